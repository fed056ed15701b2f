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

// Exit codes of the program.
const (
	Succeeded = 0
	Failed    = 1

	// FailedForGood tells a Job that there is no use in trying again.
	FailedForGood = 42
)

// cleanUpWithin is how long the program takes at most to clean up after it was
// told to stop: less than a pod's grace period.
const cleanUpWithin = 40 * time.Second

// A Program with the places it finds things in.
type Program struct {
	Source, Store, Key, Volume, Scratch, Socket, Archive, Report string

	// Log takes the words of tools, and what goes on.
	Log io.Writer

	// Now is the clock.
	Now func() time.Time

	// Patience with a database that no connection reaches: the network may not know a
	// pod that has just started, and policies that admit it admit it no sooner.
	Patience time.Duration

	// ObjectSize, Beat and LockBeat are their packages', unless given.
	ObjectSize     int64
	Beat, LockBeat time.Duration
}

// New Program of a pod.
func New(log io.Writer) *Program {
	return &Program{
		Source: backup.SourceDir, Store: backup.StoreDir, Key: backup.KeyFile, Volume: backup.VolumeDir,
		Scratch: backup.ScratchDir, Socket: backup.SocketDir, Archive: backup.ArchiveDir, Report: backup.TerminationLog, Log: log, Now: time.Now,
		Patience: 20 * time.Second,
	}
}

// Main does the Task, which is JSON, and returns the exit code.
func (p *Program) Main(ctx context.Context, task string) int {
	r := p.Do(ctx, task)
	content := Encode(r)
	_, _ = fmt.Fprintf(p.Log, "%s\n", content)
	if err := os.WriteFile(p.Report, content, 0o600); err != nil {
		_, _ = fmt.Fprintf(p.Log, "cannot write the report: %v\n", err)
		return Failed
	}
	return exitCode(r)
}

// exitCode of a Report.
func exitCode(r backup.Report) int {
	switch {
	case r.Failure == nil:
		return Succeeded
	case r.Failure.Reason.Permanent():
		return FailedForGood
	// The backup was made, and what failed came after it: to try again would be to
	// make another one.
	case r.Action == backup.Backup && r.Backup != nil:
		return FailedForGood
	case r.Action == backup.Restore && !slices.Contains(passing, r.Failure.Reason):
		return FailedForGood
	}
	return Failed
}

// passing reasons of a restore to fail. For any other one it fails again.
var passing = []backup.Reason{backup.Interrupted, backup.StoreUnreachable, backup.SourceUnreachable}

// Do the Task, and report.
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
	if t.Method == backupv1.Physical {
		hide.addFolder(p.Source)
		return hide.report(physical.Run(ctx, t))
	}

	j := &job{Program: p, task: t, report: backup.Report{Action: t.Action, Started: started}, hide: &hide}
	log := &lines{to: p.Log, hide: j.hide}
	j.log = log
	err := j.do(ctx)
	if !storeFailed(err) {
		j.catalog(ctx)
	}
	j.close()
	log.flush()
	if err != nil {
		// A reason that nobody gave is the tool's or ours.
		reason := backup.ReasonOf(backup.WithReason(backup.ToolFailed, err))
		if ctx.Err() != nil {
			reason = backup.Interrupted
		}
		j.report.Failure = &backup.Failure{Reason: reason, Message: oneLine(err.Error())}
	}
	j.report.Finished = p.Now()
	return hide.report(j.report)
}

// storeFailed tells whether there is no use in asking the store for more.
func storeFailed(err error) bool {
	r := backup.ReasonOf(err)
	return r == backup.StoreUnreachable || r == backup.StoreDenied || r == backup.BucketMissing
}

// oneLine of several.
func oneLine(s string) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}

// A job is a Task that is being done.
type job struct {
	*Program

	task   backup.Task
	report backup.Report
	hide   *secrets
	log    io.Writer

	store  *store.Store
	key    stream.Key
	seal   backup.Seal
	conn   engine.Connection
	server engine.Server
}

// sayf says what goes on.
func (j *job) sayf(format string, args ...any) { _, _ = fmt.Fprintf(j.log, format+"\n", args...) }

func (j *job) do(ctx context.Context) error {
	actions := map[backup.Action]func(context.Context) error{
		backup.Check:   j.check,
		backup.Backup:  j.backup,
		backup.Verify:  j.verify,
		backup.Restore: j.restore,
		backup.Delete:  j.delete,
	}
	act, ok := actions[j.task.Action]
	if !ok {
		return backup.Errorf(backup.InvalidTask, "there is no action %q", j.task.Action)
	}
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
	folder := backup.Folder(j.task.Destination.Prefix, j.task.Namespace, j.task.Name)
	if j.seal, err = j.key.Seal(j.task.Namespace + "/" + j.task.Name); err != nil {
		return err
	}
	j.store, err = store.Open(ctx, j.task.Destination, folder, store.Options{Credentials: j.Store, Volume: j.Volume, Seal: j.seal, Beat: j.Beat})
	if err != nil {
		return err
	}
	return act(ctx)
}

// close what is open.
func (j *job) close() {
	if j.server != nil {
		j.server.Close()
	}
	if j.store != nil {
		_ = j.store.Close()
	}
}

// catalog of the store for the report, whatever came of the rest.
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

// connect to the database of the Task.
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

// reach waits until a connection to the database is made, or refused by the database
// itself, or its host's name is not known, but no longer than the Program's patience: what is
// done next says what is wrong.
func (j *job) reach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, j.Patience)
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

// ofNetwork says whether an error is one of the way to a server, which may be over a moment
// later: not that its name is unknown.
func ofNetwork(err error) bool {
	if name := (*net.DNSError)(nil); errors.As(err, &name) {
		return !name.IsNotFound
	}
	return errors.As(err, new(*net.OpError))
}

// reachPoll is how often a database is tried.
const reachPoll = 200 * time.Millisecond
