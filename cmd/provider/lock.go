package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
)

// unreadyFor is for how long a replica that is not ready takes no part in the election of a leader.
const unreadyFor = time.Minute

// lock is the lease by which replicas elect a leader. A replica takes part once it is ready: one that has just started would
// take a lease that was released before a replica that has waited for it looks again, and read all that it watches first.
type lock struct {
	resourcelock.Interface

	ready chan struct{}
}

// newLock returns the lock of a replica. It has no lease if no leader is elected.
func newLock(c *cli, cfg *rest.Config) (*lock, error) {
	inner, err := leaderelection.NewResourceLock(rest.CopyConfig(cfg), silent{}, leaderelection.Options{
		LeaderElection: c.LeaderElection, LeaderElectionID: leaseName, LeaderElectionNamespace: c.Namespace, RenewDeadline: renewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the lock of the leader election: %w", err)
	}
	return &lock{Interface: inner, ready: make(chan struct{})}, nil
}

// Get implements resourcelock.Interface. An election begins with it.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-l.ready:
		return l.Interface.Get(ctx)
	}
}

// silent records no events: the lease shows which replica leads.
type silent struct{}

// GetEventRecorderFor implements recorder.Provider.
func (silent) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

// GetEventRecorder implements recorder.Provider.
func (silent) GetEventRecorder(string) events.EventRecorder { return &events.FakeRecorder{} }
