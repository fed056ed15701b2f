package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the lock behind a lock, which counts how often it is read.
type lease struct {
	resourcelock.Interface

	read int
}

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.read++
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "other"}, nil, nil
}

// TestLock: a replica takes part in the election of a leader from when it is ready.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &lease{}
		l := &lock{Interface: inner, ready: make(chan struct{})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := l.Get(ctx); !errors.Is(err, context.DeadlineExceeded) || inner.read > 0 {
			t.Errorf("Get() of one that is not ready: got %v, and the lease was read %d times", err, inner.read)
		}
		close(l.ready)
		r, _, err := l.Get(t.Context())
		if err != nil || r.HolderIdentity != "other" {
			t.Errorf("Get() of one that is ready: got %v, %v", r, err)
		}
	})
}
