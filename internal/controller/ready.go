package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/storeplane/storeplane/internal/controller/gate"
)

// Readiness checks whether one replica is ready: its kinds are served, their controllers are set up, and its cache is in sync.
// So is one that waits to become the leader: it can take over at once.
type Readiness struct {
	// Synced waits until the cache is in sync. It returns false if the context ends before that.
	Synced func(context.Context) bool

	// Served reports whether the API server serves a kind.
	Served gate.Lookup

	// Started reports whether a kind's controller was set up.
	Started func(schema.GroupVersionKind) bool
}

const (
	// checkTimeout is the timeout of one check: the kubelet probes again.
	checkTimeout = time.Second

	// awaitPeriod is the pause between two checks of Await.
	awaitPeriod = 500 * time.Millisecond
)

// Check returns nil if the replica is ready, and otherwise an error that contains the reason.
func (r *Readiness) Check(req *http.Request) error { return r.check(req.Context()) }

// Await waits until the replica is ready, for no longer than a time.
func (r *Readiness) Await(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for r.check(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(awaitPeriod):
		}
	}
}

func (r *Readiness) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, k := range ConfigKinds {
		is, err := r.Served(k)
		if err != nil {
			return err
		}
		if !is {
			return fmt.Errorf("cannot serve: there is no kind %s yet", k.Kind)
		}
	}
	some := false
	for _, k := range ManagedKinds {
		is, err := r.Served(k)
		if err != nil {
			return err
		}
		if is && !r.Started(k) {
			return fmt.Errorf("cannot serve: the controller of %s is not started yet", k.Kind)
		}
		some = some || is
	}
	if !some {
		return errors.New("cannot serve: none of the managed resources is activated")
	}
	// Controllers that are set up have the cache read what they watch.
	if !r.Synced(ctx) {
		return errors.New("cannot serve: the cache is not in sync")
	}
	return nil
}

var _ healthz.Checker = (*Readiness)(nil).Check
