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

// lock takes the file lock at path and returns what releases it. Whoever has to
// wait is told so once. The lock goes with its process, however that ends.
func lock(ctx context.Context, path, what string) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder of lock %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // A lock holds no secret.
	if err != nil {
		return nil, fmt.Errorf("cannot open lock %s: %w", path, err)
	}
	told := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("cannot take lock %s: %w", path, err)
		}
		if !told {
			fmt.Fprintf(os.Stderr, "waiting for another run that is busy with %s\n", what)
			told = true
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("cannot wait for another run that is busy with %s: %w", what, err)
		}
	}
}

// lockCluster excludes other runs of up and down. The lock stands beside the
// state, not in it, because down removes the state.
func (c *cluster) lockCluster(ctx context.Context) (func(), error) {
	return lock(ctx, c.state+".lock", "the cluster")
}

// sleep waits for d, or less when ctx ends.
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

// waitFor asks ready until it returns nil, and gives its last answer when the
// time is over.
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

// writeFile writes a file and the folders above it, whole or not at all.
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

// readJSON reports false when there is no such file, or none that can be read:
// all that is kept so can be found out again.
func readJSON(path string, v any) bool {
	b, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(b, v) == nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// bootID tells one boot of the machine from the next.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
