package mysqltest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// communication is the name of the thread by which a server communicates with its group.
const communication = "gcs_xcom"

// Deafen stops the thread by which a server, given by its process ID, communicates with its group, until the server ends. All
// else in it continues, so that it notices nothing. It needs the permission to trace the process.
func Deafen(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	if err != nil {
		return err
	}
	for _, file := range threads {
		b, err := os.ReadFile(file) //nolint:gosec // It is a file of the kernel.
		if err != nil || strings.TrimSpace(string(b)) != communication {
			continue
		}
		thread, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}
		return hold(thread)
	}
	return fmt.Errorf("process %d has no thread %s: it is in no group", pid, communication)
}

// hold stops a thread until its process is killed.
func hold(thread int) error {
	stopped := make(chan error, 1)
	go func() {
		// The thread that traces another one has to wait for it, also for its end: the process would not end before.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.PtraceAttach(thread); err != nil {
			stopped <- fmt.Errorf("cannot stop thread %d: %w", thread, err)
			return
		}
		for status := syscall.WaitStatus(0); ; {
			_, err := syscall.Wait4(thread, &status, syscall.WALL, nil)
			switch {
			case errors.Is(err, syscall.EINTR):
				continue
			case err == nil && status.Stopped():
				select {
				case stopped <- nil:
				default:
				}
				continue
			case err != nil:
				select {
				case stopped <- fmt.Errorf("cannot wait for thread %d: %w", thread, err):
				default:
				}
			}
			return
		}
	}()
	select {
	case err := <-stopped:
		return err
	case <-time.After(10 * time.Second):
		return fmt.Errorf("thread %d did not stop", thread)
	}
}
