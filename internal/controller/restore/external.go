package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/progress"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// connector creates a client for one reconciliation of one Restore.
type connector struct {
	kube    kube.Kube
	reach   *resolve.Resolver
	usage   resource.ModernTracker
	images  images.Set
	witness *workload.Witness
	now     func() time.Time
	record  event.Recorder
}

// NewConnector returns a connector for Restores.
func NewConnector(k kube.Kube, own images.Set, getenv func(string) string, witness *workload.Witness, record event.Recorder) managed.ExternalConnector {
	return &connector{
		kube:    k,
		reach:   &resolve.Resolver{Reader: k.Reader, Getenv: getenv},
		usage:   resource.NewProviderConfigUsageTracker(k.Client, &storeplanev1.ProviderConfigUsage{}),
		images:  own,
		witness: witness,
		now:     time.Now,
		record:  record,
	}
}

// Connect returns a client. It connects to nothing, since all is in the API server.
func (c *connector) Connect(context.Context, resource.Managed) (managed.ExternalClient, error) {
	return &external{connector: c}, nil
}

// external carries out what Observe decided.
type external struct {
	*connector

	decision Decision
}

var errNotRestore = errors.New("cannot reconcile: the managed resource is no Restore")

// Observe reads the state, decides, and writes the Restore's status. The external resource counts
// as missing only when the Job is to be created, and is up to date once no Secret is left that
// gives access to the store.
func (e *external) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	r, ok := mg.(*backupv1.Restore)
	if !ok {
		return managed.ExternalObservation{}, errNotRestore
	}
	if xpmeta.WasDeleted(r) {
		// The Job is deleted with the Restore, and the data that it wrote stays.
		r.SetConditions(xpv2.Deleting())
		return managed.ExternalObservation{}, nil
	}
	s, err := e.readState(ctx, r)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	d, err := Decide(s)
	if err != nil {
		return managed.ExternalObservation{}, fmt.Errorf("cannot decide what to do about Restore %s/%s: %w", r.Namespace, r.Name, err)
	}
	e.decision = d
	for _, n := range d.Events {
		e.record.Event(r, n)
	}
	setStatus(r, &d)
	return managed.ExternalObservation{ResourceExists: d.Create == nil, ResourceUpToDate: len(d.Remove) == 0}, nil
}

// setStatus writes what was decided to a Restore's status. A Restore runs once, so all of it is
// done once it is Ready.
func setStatus(r *backupv1.Restore, d *Decision) {
	r.Status.AtProvider = d.Observation
	r.SetConditions(d.Condition.WithObservedGeneration(r.Generation))
	progress.Report(r, d.Observation.Phase == backupv1.RestoreFailed, true)
}

// Create applies the objects that the Job needs, and creates the Job.
func (e *external) Create(ctx context.Context, _ resource.Managed) (managed.ExternalCreation, error) {
	for _, o := range e.decision.Apply {
		if err := e.kube.Apply(ctx, o); err != nil {
			return managed.ExternalCreation{}, err
		}
	}
	return managed.ExternalCreation{}, e.kube.Create(ctx, e.decision.Create)
}

// Update removes what must not outlive the Job. A Restore runs once, so there is nothing else to
// update.
func (e *external) Update(ctx context.Context, _ resource.Managed) (managed.ExternalUpdate, error) {
	for _, s := range e.decision.Remove {
		if err := e.kube.Remove(ctx, s); err != nil {
			return managed.ExternalUpdate{}, err
		}
	}
	return managed.ExternalUpdate{}, nil
}

// Delete deletes nothing: the restored data belongs to the database.
func (e *external) Delete(context.Context, resource.Managed) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

// Disconnect does nothing: there is no connection.
func (e *external) Disconnect(context.Context) error { return nil }
