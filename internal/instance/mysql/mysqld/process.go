package mysqld

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// restartCode is the code with which the program ends to be started again, as after it has copied
// another server (https://dev.mysql.com/doc/refman/9.7/en/restart.html).
const restartCode = 16

// Process is a server as a child process.
type Process struct {
	cmd   *exec.Cmd
	done  chan struct{}
	code  atomic.Int64
	began time.Time
	said  *lastError
}

// Start starts a server. Its log goes to log.
func Start(program string, f Files, o Options, log io.Writer) (*Process, error) {
	if err := errors.Join(f.clear(o), o.Trust()); err != nil {
		return nil, err
	}
	return start(program, o.serve(f.DataDir(), f.TemporaryDir()), log)
}

// start starts the program with arguments.
func start(program string, args []string, log io.Writer) (*Process, error) {
	said := &lastError{to: log}
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // the program is part of the image, and is stopped by Stop
	cmd.Stdout, cmd.Stderr = said, said
	// With it the program knows that it is started again when it ends with restartCode.
	cmd.Env = append(os.Environ(), "MYSQLD_PARENT_PID="+strconv.Itoa(os.Getpid()))
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start MySQL: %w", err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{}), began: time.Now(), said: said}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
		p.code.Store(int64(cmd.ProcessState.ExitCode()))
	}()
	return p, nil
}

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the program has ended, and if so whether it wants to be started again.
func (p *Process) Ended() (ended, again bool) {
	select {
	case <-p.done:
		return true, p.code.Load() == restartCode
	default:
		return false, false
	}
}

// Code returns the code with which the program has ended, or -1 after a signal.
func (p *Process) Code() int { return int(p.code.Load()) }

// Problem returns why the program has ended: the last error that it wrote, and its code.
func (p *Process) Problem() string {
	why := fmt.Sprintf("MySQL has ended with code %d", p.Code())
	if p.Code() < 0 {
		why = "MySQL was killed"
	}
	if last := p.said.text(); last != "" {
		why += ": " + last
	}
	return why
}

// Began returns when the program was started.
func (p *Process) Began() time.Time { return p.began }

// Stop asks the program to end.
func (p *Process) Stop() error { return p.Signal(syscall.SIGTERM) }

// Kill ends the program at once.
func (p *Process) Kill() error { return p.Signal(syscall.SIGKILL) }

// Signal sends a signal to the program, if it still runs.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot send MySQL %s: %w", s, err)
	}
	return nil
}
