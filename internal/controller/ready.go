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

// Readiness of one replica: what it watches is in its cache, its kinds are
// served, and if it leads, their controllers are started. One that waits for the
// lead is ready too: it can take over at once.
type Readiness struct {
	// Synced waits until the cache is in sync.
	Synced func(context.Context) bool

	// Served tells whether the API server serves a kind.
	Served gate.Lookup

	// Leading is closed once this replica leads.
	Leading <-chan struct{}

	// Started tells whether a kind's controller was started.
	Started func(schema.GroupVersionKind) bool
}

// patience of one check: the kubelet asks again.
const patience = time.Second

// Check is nil if the replica is ready.
func (r *Readiness) Check(req *http.Request) error {
	ctx, cancel := context.WithTimeout(req.Context(), patience)
	defer cancel()
	if !r.Synced(ctx) {
		return errors.New("cannot serve: the cache is not in sync")
	}
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
		if is && r.leads() && !r.Started(k) {
			return fmt.Errorf("cannot serve: the controller of %s is not started yet", k.Kind)
		}
		some = some || is
	}
	if !some {
		return errors.New("cannot serve: none of the managed resources is activated")
	}
	return nil
}

func (r *Readiness) leads() bool {
	select {
	case <-r.Leading:
		return true
	default:
		return false
	}
}

var _ healthz.Checker = (*Readiness)(nil).Check
