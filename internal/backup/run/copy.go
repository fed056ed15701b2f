package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/engine/mysql"
	"github.com/storeplane/storeplane/internal/backup/folder"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/backup/stream"
	"github.com/storeplane/storeplane/internal/gtid"
)

// copies is method physical of engine mysql: the files of a server are copied by its plugin clone. A throw-away server
// in the container beside is what copies them, and what proves that a server starts from them (mysql.CopyServing). That
// container has no Secrets, and may write what it likes into the folder that both share, scratch.
type copies struct{}

func (copies) chosenBy() string {
	return "Name the one to restore in restoreFrom.systemIdentifier"
}

// copySuffix is the end of the names of a copy's objects.
const copySuffix = ".tar"

// Names in the folder scratch.
const (
	// unpackedFolder is where a copy is unpacked. It becomes mysql.CopyFolder when it is complete.
	unpackedFolder = mysql.CopyFolder + partSuffix

	// authorityFile is the authority of the certificate of the server that is copied.
	authorityFile = "authority.crt"
)

// partSuffix is the end of the name of a folder that is not complete.
const partSuffix = ".part"

// donor returns the server that is copied.
func (j *job) donor() (*mysql.Server, error) {
	s, ok := j.server.(*mysql.Server)
	if !ok {
		return nil, backup.Errorf(backup.InvalidTask, "there are no physical backups of engine %s", j.task.Database.Engine)
	}
	if j.conn.CA == "" {
		return nil, backup.Errorf(backup.SourceDenied, "cannot copy the server: its connection has no ca.crt, by which a copy verifies it. Secret <claim>-dumper of a DatabaseCluster has one")
	}
	j.hide.add(mysql.Secrets(j.conn)...)
	return s, nil
}

// check checks that the user may copy the server.
func (copies) check(ctx context.Context, j *job) error {
	donor, err := j.donor()
	if err != nil {
		return err
	}
	return mayClone(ctx, donor)
}

func mayClone(ctx context.Context, donor executing) error {
	_, err := within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, donor.MayClone(ctx) })
	return err
}

// fill copies the server, has another one start from the copy, and archives it once that has shut down.
func (copies) fill(ctx context.Context, j *job, m *backup.Manifest) error {
	donor, err := j.donor()
	if err != nil {
		return err
	}
	m.Method = backupv1.Physical
	scratch, err := os.OpenRoot(j.Scratch)
	if err != nil {
		return unusable(err)
	}
	defer func() { _ = scratch.Close() }()
	remote := j.beside()
	if err := remote.Await(ctx); err != nil {
		return err
	}
	var archived gtid.Set
	if m.System, archived, err = j.continued(ctx, donor); err != nil {
		return err
	}
	if err := j.clone(ctx, remote, donor, scratch); err != nil {
		return err
	}
	system, err := j.prove(ctx, remote, m)
	if err != nil {
		return err
	}
	if err := belongs(m, system, archived); err != nil {
		return err
	}
	j.sayf("archiving the copy")
	d := backup.Dump{}
	err = j.upload(ctx, m, "001", copySuffix, &d, func(w io.Writer) error { return pack(ctx, scratch, w) })
	m.Dumps = []backup.Dump{d}
	if err != nil {
		return err
	}
	m.Archived, err = j.archived(ctx, m.System)
	return err
}

// executing is a server that is copied.
type executing interface {
	MayClone(ctx context.Context) error
	System(ctx context.Context) (string, error)
	Executed(ctx context.Context) (gtid.Set, error)
	Reconnect()
}

const (
	// catchUpWithin is how long a server may take to execute what is archived already, and catchUpPoll how often it is
	// asked. It is longer than the data of a server that lacks some takes to count as another history, which is backed up
	// then.
	catchUpWithin = partAfter + 2*time.Minute
	catchUpPoll   = 5 * time.Second
)

// continued returns the identifier of a server's data and what is archived of that, or an error unless the server has all of it,
// once it has had time to execute it. One that lacks some has an older state, as that of a volume that was put back: a backup
// with what it has written since would be restored with what is archived of the history that was given up.
func (j *job) continued(ctx context.Context, donor executing) (system string, archived gtid.Set, err error) {
	for end := j.Now().Add(catchUpWithin); ; {
		system, archived, err = j.compared(ctx, donor)
		if backup.ReasonOf(err) != backup.SourceUnreachable || !j.Now().Before(end) {
			return system, archived, err
		}
		// Another server may be the primary meanwhile.
		donor.Reconnect()
		if err := wait(ctx, catchUpPoll); err != nil {
			return "", gtid.Set{}, err
		}
	}
}

// compared returns the identifier of a server's data and what is archived of that, or an error unless the server has all of it.
// It is asked last: by then it may have executed more.
func (j *job) compared(ctx context.Context, donor executing) (system string, archived gtid.Set, err error) {
	if err := mayClone(ctx, donor); err != nil {
		return "", gtid.Set{}, err
	}
	if system, err = within(ctx, donor.System); err != nil {
		return "", gtid.Set{}, err
	}
	if archived, err = j.archivedOf(ctx, system); err != nil {
		return "", gtid.Set{}, err
	}
	executed, err := within(ctx, donor.Executed)
	if err != nil {
		return "", gtid.Set{}, err
	}
	if lacks := archived.Minus(executed); !lacks.IsEmpty() {
		return "", gtid.Set{}, backup.Errorf(backup.SourceUnreachable, "the server lacks transactions that are archived of its data, %d in all: %s. It is not backed up before it has them, or its data counts as another history, which the pod with label app.kubernetes.io/component=archive finds: see its log", lacks.Len(), lacks)
	}
	return system, archived, nil
}

// within asks a server something. One that hangs may be replaced meanwhile.
func within[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return ask(ctx)
}

// belongs returns an error unless a copy, whose data has an identifier, is of the data that was to be copied, and has all that
// the server had which was asked before: another one may be the primary since.
func belongs(m *backup.Manifest, system string, archived gtid.Set) error {
	if system != m.System {
		return backup.Errorf(backup.SourceUnreachable, "the copy is of another history of the data than it was to be of: another server became the primary meanwhile, or an older state of the data counts as another history since")
	}
	has, err := gtid.Parse(m.Position)
	if err != nil {
		return backup.Errorf(backup.ToolFailed, "cannot read the transactions of the copy: %w", err)
	}
	if lacks := archived.Minus(has); !lacks.IsEmpty() {
		return backup.Errorf(backup.SourceUnreachable, "the copy lacks transactions that are archived of its data, %d in all: %s. Another server than the one that had them was copied", lacks.Len(), lacks)
	}
	return nil
}

// archivedOf returns the transactions of a database that are known to be archived, from the newest segments, the record of
// how far the archive is, and the newest backups, which may have more. Where no binary logs are archived there are none: backups
// are restored alone.
func (j *job) archivedOf(ctx context.Context, system string) (gtid.Set, error) {
	logs := *j
	var err error
	if logs.store, err = j.storeOf(ctx, backup.BinaryLog); err != nil {
		return gtid.Set{}, err
	}
	defer func() { _ = logs.store.Close() }()
	var out gtid.Set
	r, err := logs.reached(ctx, system)
	if err != nil {
		return out, err
	}
	found := r != nil
	if found {
		out = r.Executed
	}
	l, err := logs.store.Newest(ctx, resumeFrom)
	if err != nil {
		return out, err
	}
	for _, item := range l.Good() {
		if s, err := segment.Of(item.Manifest); err == nil && s.System == system {
			out, found = out.Union(s.Transactions), true
		}
	}
	if !found {
		return out, nil
	}
	c, err := j.newestCopies(ctx, system)
	return out.Union(c.had), err
}

// archived reports whether the binary logs of a database are being archived beside its copies. A restore that is to
// have all of them fails if they are gone.
func (j *job) archived(ctx context.Context, system string) (bool, error) {
	logs := *j
	var err error
	if logs.store, err = j.storeOf(ctx, backup.BinaryLog); err != nil {
		return false, err
	}
	defer func() { _ = logs.store.Close() }()
	r, err := logs.reached(ctx, system)
	return r != nil, err
}

// beside returns the throw-away server.
func (j *job) beside() engine.Remote { return engine.Remote{Dir: j.Socket, Scratch: j.Scratch} }

// clone has the throw-away server copy another one, and shuts it down.
func (j *job) clone(ctx context.Context, remote engine.Remote, donor *mysql.Server, scratch *os.Root) error {
	content, err := os.ReadFile(j.conn.CA)
	if err == nil {
		err = publish(scratch, authorityFile, content)
	}
	if err != nil {
		return backup.Errorf(engine.ScratchReason(err.Error(), backup.ToolFailed), "cannot hand the connection's ca.crt to the throw-away database: %w", err)
	}
	recipient, err := mysql.Attach(remote, j.log)
	if err != nil {
		return err
	}
	defer recipient.Close()
	j.sayf("copying the server")
	if err := recipient.Clone(ctx, donor, filepath.Join(j.Scratch, mysql.CopyFolder), filepath.Join(j.Scratch, authorityFile)); err != nil {
		return err
	}
	return recipient.Shutdown(ctx)
}

// publish writes a new file that the container beside may read, whatever the umask is.
func publish(root *os.Root, name string, content []byte) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(0o644), f.Close())
}

// prove waits until a server has started from the copy, reads what the copy has, and shuts the server down. It returns the
// identifier of the copy's data.
func (j *job) prove(ctx context.Context, remote engine.Remote, m *backup.Manifest) (system string, err error) {
	j.sayf("starting a server from the copy")
	if err := remote.AwaitOpened(ctx); err != nil {
		return "", err
	}
	s, err := mysql.Attach(remote, j.log)
	if err != nil {
		return "", err
	}
	defer s.Close()
	if m.Server, err = s.Version(ctx); err != nil {
		return "", s.Failed(err)
	}
	if m.Position, err = s.Position(ctx); err != nil {
		return "", s.Failed(err)
	}
	if system, err = s.SystemOf(ctx, j.conn.User); err != nil {
		return "", s.Failed(err)
	}
	if m.Databases, err = s.Databases(ctx); err != nil {
		return "", s.Failed(err)
	}
	for _, database := range m.Databases {
		if err := notRestoring(ctx, s, database); err != nil {
			return "", err
		}
	}
	if err := s.Shutdown(ctx); err != nil {
		return "", err
	}
	return system, remote.AwaitClosed(ctx)
}

// pack archives the copy.
func pack(ctx context.Context, scratch *os.Root, w io.Writer) error {
	root, err := scratch.OpenRoot(mysql.CopyFolder)
	if err != nil {
		return backup.Errorf(backup.ToolFailed, "cannot read the copy: %w", err)
	}
	defer func() { _ = root.Close() }()
	return folder.Pack(ctx, root, w, mysql.LeaveOut)
}

// tryOut unpacks a copy, has a server start from it, and compares what it has with the manifest. All tables are read.
func (copies) tryOut(ctx context.Context, j *job, m *backup.Manifest) (int64, error) {
	scratch, err := os.OpenRoot(j.Scratch)
	if err != nil {
		return 0, unusable(err)
	}
	defer func() { _ = scratch.Close() }()
	if err := scratch.RemoveAll(unpackedFolder); err != nil {
		return 0, unusable(err)
	}
	j.sayf("unpacking the copy")
	if err := j.unpack(ctx, m, scratch, unpackedFolder, false); err != nil {
		return 0, err
	}
	if err := scratch.Rename(unpackedFolder, mysql.CopyFolder); err != nil {
		return 0, unusable(err)
	}
	j.sayf("starting a server from the copy")
	remote := j.beside()
	if err := remote.AwaitOpened(ctx); err != nil {
		return 0, err
	}
	s, err := mysql.Attach(remote, j.log)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	rows, err := j.compareCopy(ctx, s, m)
	if err == nil {
		err = j.tryOutLogs(ctx, s, m)
	}
	return rows, s.Failed(err)
}

// tryOutLogs has a server that has started from a copy apply what is archived of the binary logs after it, to the end.
func (j *job) tryOutLogs(ctx context.Context, s *mysql.Server, m *backup.Manifest) error {
	logs := *j
	logs.task.Method, logs.task.Time, logs.task.Before = backup.BinaryLog, nil, ""
	var err error
	if logs.store, err = j.storeOf(ctx, backup.BinaryLog); err != nil {
		return err
	}
	defer func() { _ = logs.store.Close() }()
	r, err := logs.plan(ctx, m)
	if err != nil || len(r.Segments) == 0 {
		return afterCopy(m, err)
	}
	relay, err := s.Relay(ctx)
	if err == nil {
		err = logs.apply(ctx, r, relay)
	}
	return afterCopy(m, err)
}

// afterCopy returns the error of what was written after a backup.
func afterCopy(m *backup.Manifest, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("backup %s can be restored, and what was written after it cannot: %w", m.ID, err)
}

// compareCopy compares what a server that has started from a copy has with the manifest, and returns its rows.
func (j *job) compareCopy(ctx context.Context, s *mysql.Server, m *backup.Manifest) (int64, error) {
	position, err := s.Position(ctx)
	if err != nil {
		return 0, err
	}
	if position != m.Position {
		return 0, backup.Errorf(backup.ContentDiffers, "a server that has started from the copy has the transactions %q, and the copy had %q when it was made", position, m.Position)
	}
	databases, err := s.Databases(ctx)
	if err != nil {
		return 0, err
	}
	if !slices.Equal(databases, m.Databases) {
		return 0, backup.Errorf(backup.ContentDiffers, "a server that has started from the copy has the databases %s, and the copy had %s when it was made", strings.Join(databases, ", "), strings.Join(m.Databases, ", "))
	}
	j.sayf("reading all tables")
	rows, err := s.CountAll(ctx, databases)
	if err != nil {
		return 0, err
	}
	j.report.Databases = databases
	if j.task.Query == "" {
		return rows, nil
	}
	database := j.task.QueryDatabase
	if database == "" && len(databases) > 0 {
		database = databases[0]
	}
	return rows, s.Query(ctx, database, j.task.Query)
}

// restore refuses to: the files of a server are those of all its databases and users.
func (copies) restore(context.Context, *job) error {
	return backup.Errorf(backup.InvalidTask, "cannot restore a physical backup into a database that is there: claim a DatabaseCluster with spec.restoreFrom")
}

// unpack unpacks a copy into a new folder of root. With sync it returns once all is on the disk.
func (j *job) unpack(ctx context.Context, m *backup.Manifest, root *os.Root, name string, sync bool) error {
	if len(m.Dumps) != 1 {
		return backup.Errorf(backup.BackupCorrupt, "backup %s has %d archives, and not one", m.ID, len(m.Dumps))
	}
	d := m.Dumps[0]
	if err := room(root, d.Bytes); err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o750); err != nil {
		return unusable(err)
	}
	to, err := root.OpenRoot(name)
	if err != nil {
		return unusable(err)
	}
	defer func() { _ = to.Close() }()
	r, err := stream.NewReader(ctx, j.store, m.ID, d.Objects, m.Compression, m.Recipient, j.key)
	if err != nil {
		return err
	}
	defer r.Close()
	counted := &counting{r: r}
	err = folder.Unpacking{Root: to, Limit: d.Bytes, Sync: sync}.Unpack(ctx, counted)
	if err == nil {
		// The archive ends before the objects do, and only their end proves that all of it is what was written.
		err = counted.finish(d)
	}
	if err != nil {
		return fmt.Errorf("cannot unpack backup %s: %w", m.ID, err)
	}
	return nil
}

// room returns an error if a disk has less room than is needed.
func room(root *os.Root, bytes int64) error {
	f, err := root.Open(".")
	if err != nil {
		return unusable(err)
	}
	defer func() { _ = f.Close() }()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return unusable(err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < bytes { //nolint:gosec // the size of a disk
		return backup.Errorf(backup.NoSpace, "cannot unpack the copy: it has %d MB, and its disk has %d MB left", bytes>>20, free>>20)
	}
	return nil
}

// unusable returns the error of a folder that cannot be used.
func unusable(err error) error {
	return backup.Errorf(engine.ScratchReason(err.Error(), backup.ToolFailed), "cannot use the folder of the copy: %w", err)
}

var _ method = copies{}
