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

// A Tool is a program that dumps or restores, and runs beside this one.
type Tool struct {
	Name string
	Args []string

	// Env is added to the environment of the pod.
	Env []string

	// Dir is where it runs, and User what it runs as; the defaults are those of this process.
	Dir  string
	User *syscall.Credential

	// Stdin is read by the tool, or nil. If it fails, the tool is killed, so that it does not
	// take what it has read for all there is.
	Stdin io.Reader

	// Stdout receives the output of the tool, or is nil. If it fails, so does Run.
	Stdout io.Writer

	// Log receives the error output of the tool as it comes, or is nil.
	Log io.Writer

	// Reason returns the reason that the tool's error output stands for, or ""; or is nil.
	Reason func(words string) backup.Reason
}

const (
	// stopWithin is how long a tool may take to end after SIGTERM.
	stopWithin = 5 * time.Second

	// pipeSize holds some milliseconds of a dump, so that neither side waits for the other at
	// each write.
	pipeSize = 1 << 20

	// bufferSize is how much is copied at once between a tool and this program.
	bufferSize = 256 << 10
)

// command returns the tool's command, in its own process group: what it starts ends with it.
func (t Tool) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.Name, t.Args...) //nolint:gosec // the program builds the arguments itself
	cmd.Env = append(os.Environ(), t.Env...)
	cmd.Dir = t.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: t.User}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	return cmd
}

// Run runs the tool until it ends.
func (t Tool) Run(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := t.command(running)
	words := &tail{}
	cmd.Stderr = words
	if t.Log != nil {
		cmd.Stderr = io.MultiWriter(words, t.Log)
	}

	var in, out *os.File // this program's ends of the pipes
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
	// What the tool may have started is of no use without it, and would keep the pipe open.
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

// send copies Stdin to the tool. Only an error of reading is returned: a tool that stops reading
// reports the cause itself.
func (t Tool) send(to *os.File) error {
	from := &errReader{r: t.Stdin}
	_, _ = io.CopyBuffer(onlyWriter{to}, from, make([]byte, bufferSize))
	if from.err != nil {
		// The pipe stays open: the tool must be killed before it reads an end.
		return from.err
	}
	_ = to.Close()
	return nil
}

// receive copies the tool's output to Stdout. An error of writing takes precedence.
func (t Tool) receive(from *os.File) error {
	to := &errWriter{w: t.Stdout}
	_, err := io.CopyBuffer(to, onlyReader{from}, make([]byte, bufferSize))
	if to.err != nil {
		return to.err
	}
	return err
}

// An errReader keeps the error of reading.
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

// An errWriter keeps the error of writing.
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

// Files have shortcuts for copying, which would bypass the buffer. These types hide them.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// pipe returns a pipe with a larger buffer than the default, if that is allowed.
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

// failed returns the error of a tool that ended with err and this output.
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

// A tail keeps the end of a program's output.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// tailSize is more than any message takes: a server that crashes prints much after the cause.
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

// lastLines joins the last six lines of an output, which are enough to show why it failed.
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

// Look returns the path of the first of the programs that the image has.
func Look(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", backup.Errorf(backup.InvalidTask, "cannot find %s: this is not an image for the engine", names[0])
}
