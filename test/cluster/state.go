package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lock takes the file lock at path, waiting for it if needed, and returns the function that
// releases it. It prints once that it waits. The kernel releases the lock when the process ends.
func lock(ctx context.Context, path, what string) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder of lock %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // A lock holds no secret.
	if err != nil {
		return nil, fmt.Errorf("cannot open lock %s: %w", path, err)
	}
	reported := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("cannot take lock %s: %w", path, err)
		}
		if !reported {
			fmt.Fprintf(os.Stderr, "waiting for another run that is busy with %s\n", what)
			reported = true
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("cannot wait for another run that is busy with %s: %w", what, err)
		}
	}
}

// lockCluster keeps other runs of up and down waiting. The lock file is beside the state folder,
// not in it, because down removes that.
func (c *cluster) lockCluster(ctx context.Context) (func(), error) {
	return lock(ctx, c.state+".lock", "the cluster")
}

// sleep waits for d, or returns the context's error if that ends earlier.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// waitFor calls ready every 100 ms until it returns nil. After the timeout it returns the last
// error of ready, and on cancellation context.Canceled.
func waitFor(ctx context.Context, timeout time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if cause := sleep(ctx, 100*time.Millisecond); cause != nil {
			if errors.Is(cause, context.Canceled) {
				return cause
			}
			return fmt.Errorf("not ready after %s: %w", timeout, err)
		}
	}
}

// writeFile writes a file atomically, and creates the folders above it.
func writeFile(path, content string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of %s: %w", path, err)
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(content), mode); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", path, err)
	}
	return writeFile(path, string(b)+"\n", 0o600)
}

// readJSON returns false if the file does not exist or cannot be read or parsed. Callers then
// determine its content again.
func readJSON(path string, v any) bool {
	b, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(b, v) == nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// bootID returns the kernel's ID of the current boot.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
