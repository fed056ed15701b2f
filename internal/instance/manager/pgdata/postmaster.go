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

// ErrStopped is of a server that does not run.
var ErrStopped = errors.New("the server has stopped")

// Stopped says whether no server runs on a data directory. PostgreSQL removes the file
// with its process ID after all of its processes have ended, in each way of stopping it
// but SIGKILL.
func Stopped(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "postmaster.pid"))
	return errors.Is(err, fs.ErrNotExist)
}

// Standby says whether the server of a data directory starts as a standby.
func Standby(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "standby.signal"))
	return err == nil
}

// Signal the server of a data directory: SIGINT stops it fast, SIGQUIT immediately. It
// is ErrStopped where none runs.
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

// postmaster is the process ID of the server. The number may be another program's by
// now, where the server was killed.
func postmaster(dir string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
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
