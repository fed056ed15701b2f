package engine

import (
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

	"golang.org/x/sys/unix"

	"github.com/storeplane/storeplane/internal/backup"
)

// Files in the folder that the container of a throw-away server shares with the one that uses the
// server, beside the server's socket.
const (
	readyFile = "ready"
	endedFile = "ended"
	wordsFile = "words"

	// openedFile and closedFile exist once a server has started from a copy, and once it has shut down.
	openedFile = "opened"
	closedFile = "closed"
)

// A Stage reports the state of a throw-away server to the container beside its own. A backup may
// contain programs, which run in the server: so its container has neither the credentials of the
// store nor any other Secret.
type Stage struct {
	dir   string
	words tail
}

// ErrUsed means that a server ran in the folder before: its container was killed and started
// again, and the data is lost.
var ErrUsed = errors.New("the throw-away database was killed, and is gone with what it held")

// NewStage creates a Stage in a folder that must be unused.
func NewStage(dir string) (*Stage, error) {
	f, err := os.OpenFile(filepath.Join(dir, wordsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the folder is that of the stage
	if errors.Is(err, os.ErrExist) {
		return &Stage{dir: dir}, ErrUsed
	}
	if err != nil {
		return nil, scratchError(err)
	}
	return &Stage{dir: dir}, f.Close()
}

// Write appends to the output of the server, of which the Stage keeps the end.
func (s *Stage) Write(p []byte) (int, error) {
	n, _ := s.words.Write(p)
	return n, s.publish(wordsFile, s.words.String())
}

// Ready reports that the server accepts connections.
func (s *Stage) Ready() error { return s.publish(readyFile, "") }

// Opened reports that a server has started from a copy and accepts connections.
func (s *Stage) Opened() error { return s.publish(openedFile, "") }

// Closed reports that the server of a copy has shut down, so that its files are complete.
func (s *Stage) Closed() error { return s.publish(closedFile, "") }

// Ended reports why the server ended, so that the other container stops waiting for it.
func (s *Stage) Ended(err error) error {
	text, encodeErr := json.Marshal(backup.Failure{Reason: backup.ReasonOf(err), Message: lastLines(err.Error())})
	return errors.Join(encodeErr, s.publish(endedFile, string(text)))
}

func (s *Stage) publish(name, text string) error {
	// The file is replaced atomically, because it may be read at any moment.
	next := filepath.Join(s.dir, "."+name)
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return scratchError(err)
	}
	if err := os.Rename(next, filepath.Join(s.dir, name)); err != nil {
		return scratchError(err)
	}
	return nil
}

// A Remote is a throw-away server in the container beside this one.
type Remote struct {
	// Dir is the folder shared with that container, and Scratch has the server's data.
	Dir, Scratch string
}

// errEnded means that a server ended before it was ready.
var errEnded = errors.New("the throw-away database ended")

// Await waits for an empty server.
func (r Remote) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	switch err := r.await(ctx, readyFile); {
	case errors.Is(err, errEnded):
		return r.Failed(backup.Errorf(backup.ToolFailed, "cannot make a throw-away database: %s", r.cause().Message))
	case err != nil:
		return r.Failed(backup.Errorf(backup.ToolFailed, "cannot make a throw-away database: the container beside does not answer: %w", err))
	}
	return nil
}

// whyNot are the reasons that are accepted from a server that does not start with the files of a
// backup. They are limited, because the container that reports them may run anything.
var whyNot = []backup.Reason{
	backup.BackupCorrupt, backup.BackupMissing, backup.NoSpace, backup.KeyMissing, backup.StoreUnreachable, backup.StoreDenied, backup.BucketMissing,
}

// AwaitRecovered waits for a server that starts with the files of a backup. It has no time limit
// but that of ctx, since there may be much to recover. The backup or the store may be the cause
// if it fails.
func (r Remote) AwaitRecovered(ctx context.Context) error { return r.awaitEither(ctx, readyFile) }

// AwaitOpened waits for a server that starts from a copy, as AwaitRecovered does.
func (r Remote) AwaitOpened(ctx context.Context) error { return r.awaitEither(ctx, openedFile) }

// AwaitClosed waits until the server of a copy has shut down, as AwaitRecovered does.
func (r Remote) AwaitClosed(ctx context.Context) error { return r.awaitEither(ctx, closedFile) }

func (r Remote) awaitEither(ctx context.Context, name string) error {
	switch err := r.await(ctx, name); {
	case errors.Is(err, errEnded):
		f := r.cause()
		if !slices.Contains(whyNot, f.Reason) {
			f.Reason = backup.ToolFailed
		}
		return r.Failed(backup.Errorf(f.Reason, "%s", f.Message))
	case err != nil:
		return fmt.Errorf("cannot wait for the throw-away database: %w", err)
	}
	return nil
}

// await waits for a file of the other container, and fails with errEnded if its server ended.
func (r Remote) await(ctx context.Context, name string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !r.has(name) {
		if r.has(endedFile) {
			return errEnded
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// Failed explains err with the server's own output if it has ended or its disk is full.
func (r Remote) Failed(err error) error {
	words := func() string { return r.read(wordsFile) + "\n" + r.cause().Message }
	err = explain(err, death{dir: r.Scratch, words: words, within: r.endedWithin})
	// The data is removed when the server ends, so only the other container saw the full disk.
	if f := r.cause(); backup.ReasonOf(err) == backup.ToolFailed && f.Reason == backup.NoSpace {
		return backup.Errorf(f.Reason, "%s", f.Message)
	}
	return err
}

// cause returns the reported cause of the server's end, or a zero Failure.
func (r Remote) cause() backup.Failure {
	var f backup.Failure
	_ = json.Unmarshal([]byte(r.read(endedFile)), &f)
	f.Message = lastLines(f.Message)
	return f
}

func (r Remote) endedWithin(d time.Duration) bool {
	for deadline := time.Now().Add(d); ; time.Sleep(50 * time.Millisecond) {
		if r.has(endedFile) {
			return true
		}
		if !time.Now().Before(deadline) {
			return false
		}
	}
}

func (r Remote) has(name string) bool {
	_, err := os.Lstat(filepath.Join(r.Dir, name))
	return err == nil
}

// read reads a file that any program in the other container may have written. It follows no link,
// since one could lead to a Secret of this container.
func (r Remote) read(name string) string {
	f, err := os.OpenFile(filepath.Join(r.Dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) //nolint:gosec // the names are constants
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(f, tailSize))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b), "")
}

// A death is what can be observed of a server that may have ended.
type death struct {
	// dir is the folder of its data, and words returns its output.
	dir   string
	words func() string

	// within reports whether it ends within a time.
	within func(time.Duration) bool
}

// explain explains an error with the server's own output if the server has ended or its disk is
// full. An error caused by the store or the backup is returned as it is.
func explain(err error, d death) error {
	switch backup.ReasonOf(err) {
	case "", backup.ToolFailed, backup.SourceUnreachable, backup.SourceDenied, backup.InvalidTask:
	default:
		return err
	}
	// A server that dies of the request may take a moment to end.
	if backup.ReasonOf(err) == backup.SourceUnreachable {
		d.within(dieWithin)
	}
	words := err.Error() + "\n" + d.words()
	if reason := ScratchReason(words, ""); reason != "" {
		return backup.Errorf(reason, "the throw-away database is out of room: %s", lastLines(linesWithoutRoom(words)))
	}
	if full(d.dir) {
		return backup.Errorf(backup.NoSpace, "the throw-away database has no room left on its disk: %w", err)
	}
	if d.within(0) {
		return backup.Errorf(backup.ToolFailed, "the throw-away database ended: %s", lastLines(words))
	}
	return &backup.Error{Reason: backup.ToolFailed, Err: err}
}

// endedError returns the error of a server that ended with err.
func endedError(name string, err error) error {
	if err == nil {
		return fmt.Errorf("%s ended", name)
	}
	return fmt.Errorf("%s ended: %w", name, err)
}
