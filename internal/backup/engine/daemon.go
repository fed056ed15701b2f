package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storeplane/storeplane/internal/backup"
)

// A Daemon is a throw-away server with its own folder, which is removed with it.
type Daemon struct {
	// Dir is the folder of its data, and Socket that of its sockets, whose paths must be short.
	Dir, Socket string

	// User is the user that it runs as, or nil for that of this process. Servers refuse to run as
	// root.
	User *syscall.Credential

	// StartWithin is how long a server may take to start, or 0 for two minutes.
	StartWithin time.Duration

	// shared means that Socket is not the Daemon's to remove.
	shared bool

	cmd   *exec.Cmd
	words *tail
	done  chan struct{}
	err   error
}

// nobody is the user and group that a server runs as in a pod that runs as root.
const nobody = 65534

// dieWithin is how long a server that closed a connection may take to end.
const dieWithin = 3 * time.Second

// startWithin is ample time for a server to start on a busy node.
const startWithin = 2 * time.Minute

// NewDaemon creates a folder for a server in the scratch folder, and one for its socket unless
// socket names one.
func NewDaemon(scratch, socket string) (*Daemon, error) {
	d := &Daemon{words: &tail{}, Socket: socket, shared: socket != ""}
	if os.Geteuid() == 0 {
		d.User = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	var err error
	if d.Dir, err = os.MkdirTemp(scratch, "server-"); err != nil {
		return nil, scratchError(err)
	}
	if !d.shared {
		if d.Socket, err = os.MkdirTemp("", "socket-"); err != nil {
			d.Stop()
			return nil, scratchError(err)
		}
	}
	if d.User != nil {
		for _, dir := range []string{d.Dir, d.Socket} {
			if err := os.Chown(dir, nobody, nobody); err != nil {
				d.Stop()
				return nil, scratchError(err)
			}
		}
	}
	return d, nil
}

func scratchError(err error) error {
	return backup.Errorf(ScratchReason(err.Error(), backup.ToolFailed), "cannot make a throw-away database: %w", err)
}

// Start starts the server, and waits until ready returns nil.
func (d *Daemon) Start(ctx context.Context, log io.Writer, ready func(context.Context) error, name string, args ...string) error {
	t := Tool{Name: name, Args: args, Dir: d.Dir, User: d.User}
	d.cmd = t.command(context.WithoutCancel(ctx))
	d.cmd.Cancel, d.cmd.WaitDelay = nil, 0
	out := io.Writer(d.words)
	if log != nil {
		out = io.MultiWriter(d.words, log)
	}
	d.cmd.Stdout, d.cmd.Stderr = out, out
	if err := d.cmd.Start(); err != nil {
		d.cmd = nil
		return backup.Errorf(backup.ToolFailed, "cannot start %s: %w", filepath.Base(name), err)
	}
	d.done = make(chan struct{})
	go func() {
		d.err = d.cmd.Wait()
		close(d.done)
	}()

	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.StartWithin, startWithin))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-d.done:
			return d.Failed(endedError(filepath.Base(name), d.err))
		case <-ctx.Done():
			return d.Failed(fmt.Errorf("%s does not answer: %w", filepath.Base(name), err))
		case <-tick.C:
		}
	}
}

// Failed explains err with the server's own output if it has ended or its disk is full.
func (d *Daemon) Failed(err error) error {
	return explain(err, death{dir: d.Dir, words: d.words.String, within: d.endedWithin})
}

func (d *Daemon) endedWithin(t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-d.done:
		return true
	default:
	}
	select {
	case <-d.done:
		return true
	case <-timer.C:
		return false
	}
}

// Wait waits until the server has ended, and returns why, or nil if ctx ends first.
func (d *Daemon) Wait(ctx context.Context) error {
	select {
	case <-d.done:
		return endedError(filepath.Base(d.cmd.Path), d.err)
	case <-ctx.Done():
		return nil
	}
}

// WaitShutdown waits until the server has ended because it was asked to, and returns an error if it failed, or if
// ctx ends first. Another server may be started then.
func (d *Daemon) WaitShutdown(ctx context.Context) error {
	select {
	case <-d.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if d.err != nil {
		return d.Failed(endedError(filepath.Base(d.cmd.Path), d.err))
	}
	return nil
}

// full reports whether a disk has next to no room left: the output of a server that crashed for
// lack of room need not mention it.
func full(dir string) bool {
	const next = 8 << 20
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Bavail*uint64(fs.Bsize) < next //nolint:gosec // sizes are positive
}

// linesWithoutRoom returns the last two lines that are about a full disk.
func linesWithoutRoom(words string) string {
	var out []string
	for line := range strings.SplitSeq(words, "\n") {
		if ScratchReason(line, "") != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-2):], "\n")
}

// Kill kills the server and waits until it has ended.
func (d *Daemon) Kill() {
	if d.cmd != nil {
		_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
		<-d.done
		d.cmd = nil
	}
}

// Stop kills the server, and removes its data, which is not needed again.
func (d *Daemon) Stop() {
	d.Kill()
	_ = os.RemoveAll(d.Dir)
	if !d.shared {
		_ = os.RemoveAll(d.Socket)
	}
}
