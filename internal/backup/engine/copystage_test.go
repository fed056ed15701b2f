package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
)

// TestCopyStage: the container that reads the store waits for each step of a server that starts from a copy.
func TestCopyStage(t *testing.T) {
	s, r := played(t, (*Stage).Ready)
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.AwaitOpened(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitOpened() before the server has started: %v", err)
	}
	for _, step := range []struct {
		report func() error
		await  func(context.Context) error
	}{{s.Opened, r.AwaitOpened}, {s.Closed, r.AwaitClosed}} {
		if err := errors.Join(step.report(), step.await(t.Context())); err != nil {
			t.Errorf("a step was not waited for: %v", err)
		}
	}
	_, r = played(t, ended(backup.NoSpace, "the disk is full"))
	for _, await := range []func(context.Context) error{r.AwaitOpened, r.AwaitClosed} {
		if err := await(t.Context()); backup.ReasonOf(err) != backup.NoSpace {
			t.Errorf("a server that has ended: want reason %s, got %v", backup.NoSpace, err)
		}
	}
}

// TestWaitShutdown: a Daemon runs one server after another, and distinguishes one that was shut down from one that
// failed.
func TestWaitShutdown(t *testing.T) {
	d, err := NewDaemon(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	d.User = nil
	run := func(script string) {
		t.Helper()
		if err := d.Start(t.Context(), nil, func(context.Context) error { return nil }, "/bin/sh", "-c", script); err != nil {
			t.Fatalf("Start(): %v", err)
		}
	}
	run("exit 0")
	if err := d.WaitShutdown(t.Context()); err != nil {
		t.Errorf("WaitShutdown() of one that was shut down: %v", err)
	}
	run("echo assertion >&2; exit 1")
	if err := d.WaitShutdown(t.Context()); backup.ReasonOf(err) != backup.ToolFailed {
		t.Errorf("WaitShutdown() of one that failed: want reason %s, got %v", backup.ToolFailed, err)
	}
	run("sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.WaitShutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitShutdown() of one that runs: %v", err)
	}
}
