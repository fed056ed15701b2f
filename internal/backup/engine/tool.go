package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storeplane/storeplane/internal/backup"
)

// A Tool that runs beside us: a program that dumps or restores.
type Tool struct {
	Name string
	Args []string

	// Env beside the pod's own.
	Env []string

	// Dir to run in, and User to run as: ours, unless given.
	Dir  string
	User *syscall.Credential

	// Stdin is read by the tool, or nil. When it fails, the tool is killed: it must
	// not take what it has for all there is.
	Stdin io.Reader

	// Stdout takes what the tool writes, or is nil. When it fails, so does the tool.
	Stdout io.Writer

	// Log takes the tool's own words as they come, or is nil.
	Log io.Writer

	// Reason that the tool's words stand for, or none; or nil.
	Reason func(words string) backup.Reason
}

const (
	// stopWithin is how long a tool may take to end when it is told to.
	stopWithin = 5 * time.Second

	// pipeSize holds some milliseconds of a dump, so that neither side waits for
	// the other at each write.
	pipeSize = 1 << 20

	// bufferSize of what is carried between a tool and us at once.
	bufferSize = 256 << 10
)

// command of the tool, in a group of its own: what it starts ends with it.
func (t Tool) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.Name, t.Args...) //nolint:gosec // our own arguments
	cmd.Env = append(os.Environ(), t.Env...)
	cmd.Dir = t.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: t.User}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	return cmd
}

// Run the tool to its end.
func (t Tool) Run(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := t.command(running)
	words := &tail{}
	cmd.Stderr = words
	if t.Log != nil {
		cmd.Stderr = io.MultiWriter(words, t.Log)
	}

	var in, out *os.File // our ends of the pipes
	var theirs []*os.File
	if t.Stdin != nil {
		r, w, err := pipe()
		if err != nil {
			return err
		}
		cmd.Stdin, in, theirs = r, w, append(theirs, r)
	}
	if t.Stdout != nil {
		r, w, err := pipe()
		if err != nil {
			return err
		}
		cmd.Stdout, out, theirs = w, r, append(theirs, w)
	}
	err := cmd.Start()
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		_, _ = in.Close(), out.Close()
		return backup.Errorf(backup.ToolFailed, "cannot start %s: %w", filepath.Base(t.Name), err)
	}

	var carried sync.WaitGroup
	var inErr, outErr error
	if in != nil {
		carried.Go(func() {
			if inErr = t.send(in); inErr != nil {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
		})
	}
	if out != nil {
		carried.Go(func() {
			if outErr = t.receive(out); outErr != nil {
				cancel()
			}
			_ = out.Close()
		})
	}
	err = cmd.Wait()
	// What it may have started has no use without it, and would hold up the pipe.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = in.Close()
	carried.Wait()

	switch {
	case ctx.Err() != nil:
		return backup.Errorf(backup.Interrupted, "%s was interrupted: %w", filepath.Base(t.Name), context.Cause(ctx))
	case inErr != nil:
		return inErr
	case outErr != nil:
		return outErr
	case err != nil:
		return t.failed(err, words.String())
	}
	return nil
}

// send what is read to the tool. Only what fails in reading is an error: a tool
// that takes no more says why itself.
func (t Tool) send(to *os.File) error {
	from := &errReader{r: t.Stdin}
	_, _ = io.CopyBuffer(onlyWriter{to}, from, make([]byte, bufferSize))
	if from.err != nil {
		// Not closed: the tool must be killed before it sees an end.
		return from.err
	}
	_ = to.Close()
	return nil
}

// receive what the tool writes. Only what fails in writing is an error.
func (t Tool) receive(from *os.File) error {
	to := &errWriter{w: t.Stdout}
	_, err := io.CopyBuffer(to, onlyReader{from}, make([]byte, bufferSize))
	if to.err != nil {
		return to.err
	}
	return err
}

// errReader remembers what failed in reading.
type errReader struct {
	r   io.Reader
	err error
}

func (r *errReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// errWriter remembers what failed in writing.
type errWriter struct {
	w   io.Writer
	err error
}

func (w *errWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// Files know shortcuts for copying, which would go past the buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// pipe that holds more than the usual, if that is allowed.
func pipe() (*os.File, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	if c, err := w.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
	return r, w, nil
}

// failed with words.
func (t Tool) failed(err error, words string) error {
	reason := backup.ToolFailed
	if t.Reason != nil {
		if r := t.Reason(words); r != "" {
			reason = r
		}
	}
	if strings.TrimSpace(words) == "" {
		words = err.Error()
	}
	return backup.Errorf(reason, "%s failed: %s", filepath.Base(t.Name), lastLines(words))
}

// tail keeps the last words of a tool.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// tailSize is more than any message holds: a server that crashes says much after
// it has said why.
const tailSize = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - tailSize; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.buf), "")
}

// lastLines of a tool's words, as one line: a handful says why it failed.
func lastLines(words string) string {
	const most = 6
	var lines []string
	for line := range strings.SplitSeq(words, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return strings.Join(lines, "; ")
}

// Look for the first of the programs that the image has.
func Look(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", backup.Errorf(backup.InvalidTask, "cannot find %s: this is not an image for the engine", names[0])
}
