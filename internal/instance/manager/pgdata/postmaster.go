package pgdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrStopped is the error for a server that does not run.
var ErrStopped = errors.New("the server has stopped")

// Stopped reports whether no server runs on a data directory. PostgreSQL removes the file with
// its process ID after all of its processes have ended, unless it ended by SIGKILL.
func Stopped(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "postmaster.pid"))
	return errors.Is(err, fs.ErrNotExist)
}

// Standby reports whether the server of a data directory starts as a standby.
func Standby(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "standby.signal"))
	return err == nil
}

// Signal sends a signal to the server of a data directory: SIGINT is a fast stop, SIGQUIT an
// immediate one. It returns ErrStopped if no server runs.
func Signal(dir string, sig syscall.Signal) error {
	pid, err := postmaster(dir)
	if err != nil {
		return fmt.Errorf("cannot send %s to the server of %s: %w", sig, dir, err)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("cannot send %s to the server of %s, process %d: %w", sig, dir, pid, err)
	}
	return nil
}

// postmaster returns the process ID of the server. It checks the name of the process: after
// the server was killed another program may have that ID.
func postmaster(dir string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "postmaster.pid")) //nolint:gosec // the folder is the server's
	if errors.Is(err, fs.ErrNotExist) {
		return 0, ErrStopped
	}
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("cannot read a process ID from %q", first)
	}
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil || strings.TrimSpace(string(name)) != "postgres" {
		return 0, ErrStopped
	}
	return pid, nil
}
