package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/physical"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/backup/stream"
)

// cleanUpWithin is how long the program may clean up after SIGTERM: less than the grace period of
// a pod.
const cleanUpWithin = 40 * time.Second

// A Program is the program backup with the paths that it uses.
type Program struct {
	Source, Store, Key, Volume, Scratch, Socket, Archive, Report string

	// Log receives the output of tools, and progress messages.
	Log io.Writer

	// Now returns the time.
	Now func() time.Time

	// RetryFor is how long a database that no connection reaches is retried: the network may
	// learn of a new pod only some time after it has started, and network policies admit it no
	// sooner. Nor does a Restore wait longer for its user to be created.
	RetryFor time.Duration

	// Sync is that of store.Options.
	Sync func(dir string) error

	// Accept returns an error for a backup that Fetch is not to unpack. Nil takes each.
	Accept func(m *backup.Manifest) error

	// ObjectSize, Beat and LockBeat override the defaults of their packages, unless 0.
	ObjectSize     int64
	Beat, LockBeat time.Duration

	// Pace overrides that of ArchiveLogs, unless nil.
	Pace *Pace
}

// New returns the Program with the paths of a pod.
func New(log io.Writer) *Program {
	return &Program{
		Source: backup.SourceDir, Store: backup.StoreDir, Key: backup.KeyFile, Volume: backup.VolumeDir,
		Scratch: backup.ScratchDir, Socket: backup.SocketDir, Archive: backup.ArchiveDir, Report: backup.TerminationLog, Log: log, Now: time.Now,
		RetryFor: 20 * time.Second,
	}
}

// Main executes the Task, which is JSON, writes the report, and returns the exit code.
func (p *Program) Main(ctx context.Context, task string) int {
	r := p.Do(ctx, task)
	content := Encode(r)
	_, _ = fmt.Fprintf(p.Log, "%s\n", content)
	if err := os.WriteFile(p.Report, content, 0o600); err != nil {
		_, _ = fmt.Fprintf(p.Log, "cannot write the report: %v\n", err)
		return backup.ExitFailure
	}
	return exitCode(r)
}

// exitCode returns the exit code for a Report.
func exitCode(r backup.Report) int {
	switch {
	case r.Failure == nil:
		return backup.ExitSuccess
	case r.Failure.Reason.Permanent():
		return backup.ExitPermanent
	// The backup was created, and a later step failed: a retry would create another one.
	case r.Action == backup.Backup && r.Backup != nil:
		return backup.ExitPermanent
	case r.Action == backup.Restore && !slices.Contains(passing, r.Failure.Reason):
		return backup.ExitPermanent
	}
	return backup.ExitFailure
}

// passing are the reasons for which a failed restore is retried. With any other one it would fail
// again.
var passing = []backup.Reason{backup.Interrupted, backup.StoreUnreachable, backup.SourceUnreachable}

// Do executes the Task, which is JSON, and returns the report.
func (p *Program) Do(ctx context.Context, task string) backup.Report {
	started := p.Now()
	var t backup.Task
	if err := json.Unmarshal([]byte(task), &t); err != nil {
		return backup.Report{Started: started, Finished: p.Now(), Failure: &backup.Failure{
			Reason: backup.InvalidTask, Message: fmt.Sprintf("cannot read the task in %s: %v", backup.TaskVariable, err),
		}}
	}
	if t.Action == backup.Serve {
		return p.serve(ctx, t)
	}
	hide := secrets{}
	hide.addFolder(p.Store)
	hide.addFile(p.Key)
	if byPgBackRest(t) {
		hide.addFolder(p.Source)
		return hide.report(physical.Run(ctx, t))
	}

	j := &job{Program: p, task: t, method: methodOf(t), report: backup.Report{Action: t.Action, Started: started, Place: t.Place()}, hide: &hide}
	log := &lines{to: p.Log, hide: j.hide}
	j.log = log
	err := j.do(ctx)
	if !storeFailed(err) {
		j.catalog(ctx)
	}
	j.close()
	log.flush()
	if err != nil {
		// An error without a reason is one of the tool or of this program.
		reason := backup.ReasonOf(backup.WithReason(backup.ToolFailed, err))
		if ctx.Err() != nil {
			reason = backup.Interrupted
		}
		j.report.Failure = &backup.Failure{Reason: reason, Message: oneLine(err.Error())}
	}
	j.report.Finished = p.Now()
	return hide.report(j.report)
}

// byPgBackRest reports whether the Task is about backups of pgBackRest, which package physical handles.
func byPgBackRest(t backup.Task) bool {
	return t.Method == backupv1.Physical && t.Database.Engine != backupv1.MySQL
}

// storeFailed reports whether more requests to the store are of no use.
func storeFailed(err error) bool {
	r := backup.ReasonOf(err)
	return r == backup.StoreUnreachable || r == backup.StoreDenied || r == backup.BucketMissing
}

// oneLine joins lines into one.
func oneLine(s string) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}

// A job is a Task in progress.
type job struct {
	*Program

	task   backup.Task
	method method
	report backup.Report
	hide   *secrets
	log    io.Writer

	store  *store.Store
	key    stream.Key
	seal   backup.Seal
	conn   engine.Connection
	server engine.Server
}

// sayf logs progress.
func (j *job) sayf(format string, args ...any) { _, _ = fmt.Fprintf(j.log, format+"\n", args...) }

func (j *job) do(ctx context.Context) error {
	actions := map[backup.Action]func(context.Context) error{
		backup.Check:   j.check,
		backup.Backup:  j.backup,
		backup.Verify:  j.verify,
		backup.Restore: func(ctx context.Context) error { return j.method.restore(ctx, j) },
		backup.Delete:  j.delete,
	}
	act, ok := actions[j.task.Action]
	if !ok {
		return backup.Errorf(backup.InvalidTask, "there is no action %q", j.task.Action)
	}
	if err := j.open(ctx); err != nil {
		return err
	}
	return act(ctx)
}

// open reads the key, and opens the store.
func (j *job) open(ctx context.Context) error {
	if j.task.Namespace == "" || j.task.Name == "" {
		return backup.Errorf(backup.InvalidTask, "the task names no Backup")
	}
	if j.task.Encrypted {
		var err error
		if j.key, err = stream.ReadKey(j.Key); err != nil {
			return err
		}
	}
	var err error
	if j.seal, err = j.key.Seal(j.task.Namespace + "/" + j.task.Name); err != nil {
		return err
	}
	j.store, err = j.storeOf(ctx, j.task.Method)
	return err
}

// storeOf opens the store of the backups of a method.
func (j *job) storeOf(ctx context.Context, m backupv1.Method) (*store.Store, error) {
	folder := backup.Folder(j.task.Destination.Prefix, j.task.Namespace, j.task.Name)
	return store.Open(ctx, j.task.Destination, folder, store.Options{
		Method: m, Credentials: j.Store, Volume: j.Volume, Seal: j.seal, Beat: j.Beat, Sync: j.Sync,
	})
}

// close closes what is open.
func (j *job) close() {
	if j.server != nil {
		j.server.Close()
	}
	if j.store != nil {
		_ = j.store.Close()
	}
}

// catalog lists the store for the report, whether the action succeeded or not.
func (j *job) catalog(ctx context.Context) {
	if j.store == nil || j.report.Catalog != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer cancel()
	l, err := j.store.List(ctx)
	if err != nil {
		j.sayf("cannot list the backups: %v", err)
		return
	}
	j.report.Catalog = catalog(l)
}

// connect connects to the database of the Task.
func (j *job) connect(ctx context.Context) error {
	var err error
	if j.conn, err = engine.ReadConnection(j.Source); err != nil {
		return err
	}
	j.hide.add(j.conn.Secrets()...)
	j.hide.addFile(j.Source + "/uri")
	if j.server, err = open(j.task.Database.Engine, j.conn, j.log); err != nil {
		return err
	}
	j.reach(ctx)
	return nil
}

// reach waits until a connection to the database is made, the database itself refuses one, or the
// name of its host is unknown, but no longer than RetryFor. It returns no error, since the next
// request fails with it.
func (j *job) reach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, j.RetryFor)
	defer cancel()
	for ctx.Err() == nil {
		_, err := j.server.Version(ctx)
		if !ofNetwork(err) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(reachPoll):
		}
	}
}

// ofNetwork reports whether an error is one of the network, which may pass in a moment. An
// unknown host name is none.
func ofNetwork(err error) bool {
	if name := (*net.DNSError)(nil); errors.As(err, &name) {
		return !name.IsNotFound
	}
	return errors.As(err, new(*net.OpError))
}

// reachPoll is how often a connection to a database is attempted.
const reachPoll = 200 * time.Millisecond
