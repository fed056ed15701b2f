package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestRecordTellsProcessesApart(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()

	r := recordOf(cmd.Process.Pid)
	if !r.alive() {
		t.Error("a running process is called dead")
	}
	other := r
	other.Started = "1"
	if other.alive() {
		t.Error("another process of the same pid is called ours")
	}
	earlier := r
	earlier.Boot = "earlier"
	if earlier.alive() {
		t.Error("a process of an earlier boot is called ours")
	}
	earlier.stop(t.Context(), 0)
	if !r.alive() {
		t.Error("stopping a process of an earlier boot stopped another")
	}
	r.stop(t.Context(), time.Second)
	<-done //nolint:errcheck // The error is that the process was killed.
	if r.alive() {
		t.Error("a stopped process is called running")
	}
}

func TestWaitFor(t *testing.T) {
	broken := errors.New("broken")
	tries := 0
	err := waitFor(t.Context(), time.Second, func(context.Context) error {
		if tries++; tries < 3 {
			return broken
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("waitFor(...): got %v after %d tries, want success after 3", err, tries)
	}
	err = waitFor(t.Context(), 50*time.Millisecond, func(context.Context) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("waitFor(...): got %v, want the last answer", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = waitFor(ctx, time.Minute, func(context.Context) error { return broken })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("waitFor(...): got %v, want %v", err, context.Canceled)
	}
}
