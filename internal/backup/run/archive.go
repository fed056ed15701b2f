package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/binlog"
	"github.com/storeplane/storeplane/internal/backup/engine/mysql"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/backup/stream"
	"github.com/storeplane/storeplane/internal/gtid"
)

const (
	// archivePoll is how often files are read that grow.
	archivePoll = time.Second

	// cutAfter is the age, and cutAt the size, at which what was received becomes a segment.
	cutAfter = time.Minute
	cutAt    = 64 << 20

	// compareEvery is how often what the server has executed is compared with what is archived, and recordEvery how
	// often the store is made to say that it is the same.
	compareEvery = 10 * time.Second
	recordEvery  = 5 * time.Minute

	// connectAgain is the pause before the next connection after one was lost, and storeAgain that before the store
	// is tried again.
	connectAgain = 2 * time.Second
	storeAgain   = 5 * time.Second

	// heldMost is how much may be received that is not in the store yet.
	heldMost = 1 << 30

	// lookEvery is how often a backup is looked for that has what is missing in the archive.
	lookEvery = time.Minute

	// resumeFrom is how many of the newest segments, or backups, are read to find out what is archived.
	resumeFrom = 16
)

// Archived is how far the binary logs of a server are archived.
type Archived struct {
	// Until is the time until which all that was committed is in the store, or zero if that is not known yet.
	Until time.Time

	// Missing are transactions that were lost: they are in no segment, and the newest backup that was known when this
	// was noticed does not have them. Before is the newest time before them that can be restored to, or zero if it is
	// not known, and Ended is when the first backup with them was complete, or zero while there is none.
	Missing       gtid.Set
	Before, Ended time.Time

	// Problem describes why nothing is archived now, or is "".
	Problem string
}

// ArchiveLogs archives the binary logs of the Task's server as segments beside its physical backups, until ctx ends. It
// goes on where the newest segments end, whichever server is the primary, and passes on how far it is.
//
// Socket and Report of the Program are not used, and Scratch is a folder for what was received.
func (p *Program) ArchiveLogs(ctx context.Context, t backup.Task, say func(Archived)) error {
	hide := secrets{}
	hide.addFolder(p.Store)
	hide.addFile(p.Key)
	log := &lines{to: p.Log, hide: &hide}
	defer log.flush()
	t.Method = backup.BinaryLog
	a := &archiver{job: &job{Program: p, task: t, hide: &hide, log: log}, say: say}
	defer a.close()
	if t.Database.Engine != backupv1.MySQL {
		return backup.Errorf(backup.InvalidTask, "cannot archive binary logs of engine %q: only MySQL has them", t.Database.Engine)
	}
	if err := a.open(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := a.session(ctx)
		if ctx.Err() != nil {
			break
		}
		a.trouble(err)
		_ = wait(ctx, connectAgain)
	}
	return nil
}

// An archiver archives binary logs.
type archiver struct {
	*job

	say   func(Archived)
	state Archived

	// source is the server, and system the identifier of its data.
	source *mysql.Server
	system string

	// have are the transactions that are archived, or are before the archive began; known is false until they were
	// read. recorded is when the store was last made to say that there are no others.
	have     gtid.Set
	known    bool
	recorded time.Time

	// part is what was received and is not in the store yet.
	part part

	// sample is what the server had executed at a time, until all of that is archived, and sampled is when it was
	// taken last.
	sample  *segment.Reached
	sampled time.Time

	// looked is when a backup was looked for last that ends a gap.
	looked time.Time
}

// A part is the part of a file that the next segment is made of.
type part struct {
	segment.Segment

	file       string
	head       int64
	start, end int64
	since      time.Time
}

// session receives binary logs until the connection is lost, and archives them.
func (a *archiver) session(ctx context.Context) error {
	if err := a.begin(ctx); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(a.Scratch, "binlog-")
	if err != nil {
		return unusable(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.source.Stream(receiving, folder, a.have) }()
	err = a.follow(ctx, folder, ended)
	stop()
	return err
}

// begin connects to the server, and finds out where to go on.
func (a *archiver) begin(ctx context.Context) error {
	if a.server != nil {
		a.server.Close()
		a.server = nil
	}
	if err := a.connect(ctx); err != nil {
		return err
	}
	var err error
	if a.source, err = a.donor(); err != nil {
		return err
	}
	if err := a.source.MayStream(ctx); err != nil {
		return err
	}
	system, err := a.source.System(ctx)
	if err != nil {
		return err
	}
	if system != a.system {
		a.system, a.known, a.state = system, false, Archived{}
	}
	executed, err := a.source.Executed(ctx)
	if err != nil {
		return err
	}
	if !a.known {
		if err := a.resume(ctx, executed); err != nil {
			return err
		}
	}
	purged, err := a.source.Purged(ctx)
	if err != nil {
		return err
	}
	if lost := purged.Minus(a.have); !lost.IsEmpty() {
		a.sayf("%d transactions are in no binary log of the server, and were not archived: %s", lost.Len(), lost)
		a.have = a.have.Union(lost)
		a.state.Missing, a.state.Before, a.state.Ended = a.state.Missing.Union(lost), a.state.Until, time.Time{}
	}
	return a.mend(ctx)
}

// newestCopy returns the newest backup of the database, or nil.
func (a *archiver) newestCopy(ctx context.Context) (*backup.Manifest, error) {
	copies, err := a.storeOf(ctx, backupv1.Physical)
	if err != nil {
		return nil, err
	}
	defer func() { _ = copies.Close() }()
	l, err := copies.Newest(ctx, resumeFrom)
	if err != nil {
		return nil, err
	}
	for _, item := range slices.Backward(l.Good()) {
		if item.Manifest.System == a.system {
			return item.Manifest, nil
		}
	}
	return nil, nil
}

// mend notes whether there is a backup by now that has what is missing in the archive.
func (a *archiver) mend(ctx context.Context) error {
	if a.state.Missing.IsEmpty() || !a.state.Ended.IsZero() || time.Since(a.looked) < lookEvery {
		return nil
	}
	a.looked = time.Now()
	m, err := a.newestCopy(ctx)
	if err != nil || m == nil {
		return err
	}
	has, err := gtid.Parse(m.Position)
	if err == nil && has.Contains(a.state.Missing) {
		a.state.Ended = m.Finished
	}
	return err
}

// resume finds out what is archived, and whether transactions are missing since the newest backup. Without an archive
// and a backup, it begins with what the server has executed by now.
func (a *archiver) resume(ctx context.Context, executed gtid.Set) error {
	l, err := a.store.Newest(ctx, resumeFrom)
	if err != nil {
		return err
	}
	a.have = gtid.Set{}
	any := false
	for _, item := range l.Good() {
		s, err := segment.Of(item.Manifest)
		if err != nil || s.System != a.system {
			continue
		}
		a.have, any = a.have.Union(s.Before).Union(s.Transactions), true
	}
	m, err := a.newestCopy(ctx)
	if err != nil {
		return err
	}
	switch {
	case m != nil:
		has, err := gtid.Parse(m.Position)
		if err != nil {
			return err
		}
		if !any {
			// All segments have expired, or there were none yet.
			a.have = has
		}
		all, _, err := a.segments(ctx, m)
		if err != nil {
			return err
		}
		a.state.Missing = all.Missing(has)
	case !any:
		a.sayf("the archive of binary logs begins")
		a.have = executed
	}
	a.known = true
	return nil
}

// follow makes segments of the files in a folder, until receiving them has ended.
func (a *archiver) follow(ctx context.Context, folder string, ended <-chan error) error {
	a.part, a.sample = part{}, nil
	for {
		var last error
		over := false
		select {
		case last = <-ended:
			over = true
		case <-time.After(archivePoll):
		}
		reading, done := ctx, func() {}
		if over {
			// What was received is archived although the pod is being stopped.
			reading, done = context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
		}
		err := a.read(reading, folder, over)
		done()
		switch {
		case over:
			return errors.Join(last, err)
		case storeTrouble(err) && a.limit(folder) == nil:
			// What is received meanwhile is kept.
			a.trouble(err)
			_ = wait(ctx, storeAgain)
			continue
		case err != nil:
			return err
		}
		if err := a.compare(ctx); err != nil {
			return err
		}
	}
}

// storeTrouble reports whether an error is one of the store.
func storeTrouble(err error) bool {
	return storeFailed(err) || backup.ReasonOf(err) == backup.StoreFull
}

// trouble passes on why nothing is archived now.
func (a *archiver) trouble(err error) {
	if message := a.hide.in(oneLine(err.Error())); message != a.state.Problem {
		a.state.Problem = message
		a.sayf("%s", message)
	}
	a.say(a.state)
}

// compare compares what is archived with what the server had executed at a time before. If it is there, all is archived
// that was committed by then: a server that is written to all the time is always ahead of its archive.
func (a *archiver) compare(ctx context.Context) error {
	if a.sample == nil {
		if time.Since(a.sampled) < compareEvery {
			return nil
		}
		// The server says when it has committed a transaction, so its clock counts.
		now, err := a.source.Now(ctx)
		if err != nil {
			return err
		}
		executed, err := a.source.Executed(ctx)
		if err != nil {
			return err
		}
		a.sample, a.sampled = &segment.Reached{System: a.system, Time: now, Executed: executed}, time.Now()
	}
	r := *a.sample
	if !a.have.Contains(r.Executed) {
		return nil
	}
	a.sample = nil
	if r.Time.Sub(a.recorded) >= recordEvery {
		if err := a.record(ctx, r); err != nil {
			a.trouble(err)
			return nil
		}
		a.recorded = r.Time
	}
	if err := a.mend(ctx); err != nil {
		a.trouble(err)
		return nil
	}
	a.state.Until, a.state.Problem = r.Time, ""
	a.say(a.state)
	return nil
}

// reachedObject is the name of the newest record of what is archived.
const reachedObject = "reached.json"

// record has the store say how far the archive is.
func (a *archiver) record(ctx context.Context, r segment.Reached) error {
	var err error
	if r.Seal, err = a.seal.Sign(r, reachedObject); err != nil {
		return err
	}
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot encode how far the archive is: %w", err)
	}
	return a.store.Write(ctx, reachedObject, append(content, '\n'))
}

// read reads the transactions that the files in a folder have whole, and makes segments of them. With all, of the last
// ones too.
func (a *archiver) read(ctx context.Context, folder string, all bool) error {
	for {
		files, err := received(folder)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return nil
		}
		more := len(files) > 1
		complete, err := a.readFile(ctx, filepath.Join(folder, files[0]), all || more)
		switch {
		case err != nil:
			return err
		case more && !complete:
			return backup.Errorf(backup.ToolFailed, "binary log %s ends in a transaction, and another one follows", files[0])
		case !more:
			return a.limit(folder)
		}
		if err := os.Remove(filepath.Join(folder, files[0])); err != nil {
			return unusable(err)
		}
	}
}

// limit returns an error if more was received than is to be held: the store cannot be written to for long.
func (a *archiver) limit(folder string) error {
	files, err := received(folder)
	if err != nil {
		return err
	}
	var size int64
	for _, f := range files {
		info, err := os.Stat(filepath.Join(folder, f))
		if err != nil {
			return unusable(err)
		}
		size += info.Size()
	}
	if size-a.part.start > heldMost {
		return backup.Errorf(backup.NoSpace, "%d MB of binary logs were received, and are not in the store yet: the server keeps them until they are", size>>20)
	}
	return nil
}

// received returns the names of the files in a folder, in the order of their numbers.
func received(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, unusable(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return out, nil
}

// readFile reads what was added to a file, and reports whether all of it is in the store. With end, nothing will be
// added.
func (a *archiver) readFile(ctx context.Context, name string, end bool) (bool, error) {
	f, err := os.Open(name) //nolint:gosec // a file of this program
	if err != nil {
		return false, unusable(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return false, unusable(err)
	}
	size := info.Size()
	l, err := binlog.OpenAt(f, size, a.part.endOf(name))
	if errors.Is(err, binlog.ErrIncomplete) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	closed := false
	for {
		t, err := l.Next(size)
		if closed = errors.Is(err, io.EOF); closed || errors.Is(err, binlog.ErrIncomplete) {
			break
		}
		if err != nil {
			return false, err
		}
		a.part.add(name, l.Head(), t, a.Now())
		if a.part.end-a.part.start >= cutAt {
			if err := a.cut(ctx, f); err != nil {
				return false, err
			}
		}
	}
	due := closed || end || a.Now().Sub(a.part.since) >= cmp.Or(a.CutAfter, cutAfter)
	if a.part.Transactions.IsEmpty() || !due {
		return closed, nil
	}
	return closed, a.cut(ctx, f)
}

// endOf returns how far a file was read, or 0 for another one.
func (p *part) endOf(name string) int64 {
	if p.file != name {
		return 0
	}
	return p.end
}

// add adds a transaction of a file.
func (p *part) add(name string, head int64, t binlog.Transaction, now time.Time) {
	if p.file != name {
		*p = part{file: name, start: t.Start}
	}
	if p.Transactions.IsEmpty() {
		p.start, p.since, p.First, p.Last = t.Start, now, t.Committed, t.Committed
	}
	p.head, p.end, p.Transactions = head, t.End, p.Transactions.Union(t.ID)
	if t.Committed.Before(p.First) {
		p.First = t.Committed
	}
	if t.Committed.After(p.Last) {
		p.Last = t.Committed
	}
}

// cut writes the part into the store. While that is not possible, it is kept.
func (a *archiver) cut(ctx context.Context, f *os.File) error {
	s := a.part.Segment
	s.ID, s.System, s.Before = backup.NewID(a.Now()), a.system, a.have
	if err := a.write(ctx, s, io.MultiReader(io.NewSectionReader(f, 0, a.part.head), io.NewSectionReader(f, a.part.start, a.part.end-a.part.start))); err != nil {
		return fmt.Errorf("cannot archive binary logs: %w", err)
	}
	a.have = a.have.Union(s.Transactions)
	a.part = part{file: a.part.file, start: a.part.end, end: a.part.end}
	a.state.Problem = ""
	return nil
}

// segmentSuffix is the end of the names of a segment's objects.
const segmentSuffix = ".binlog"

// write writes a segment, which exists once its manifest is written.
func (a *archiver) write(ctx context.Context, s segment.Segment, content io.Reader) error {
	m := &backup.Manifest{Version: backup.ManifestVersion, Engine: backupv1.MySQL, Compression: cmp.Or(a.task.Compression, stream.Zstd), Recipient: a.key.Recipient()}
	s.Describe(m)
	d := backup.Dump{}
	err := a.upload(ctx, m, "001", segmentSuffix, &d, func(w io.Writer) error {
		_, err := io.Copy(w, content)
		return err
	})
	if err != nil {
		return err
	}
	m.Dumps = []backup.Dump{d}
	return a.finish(ctx, m)
}
