package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// connector creates a client for one reconciliation of one Backup.
type connector struct {
	kube    kube.Kube
	reach   *resolve.Resolver
	usage   resource.ModernTracker
	images  images.Set
	witness *workload.Witness
	now     func() time.Time
	draw    func() ([]byte, error)
	record  event.Recorder
	metrics *telemetry.Backups
}

// NewConnector returns a connector for Backups.
func NewConnector(k kube.Kube, own images.Set, getenv func(string) string, witness *workload.Witness, record event.Recorder, metrics *telemetry.Backups) managed.ExternalConnector {
	return &connector{
		kube:    k,
		reach:   &resolve.Resolver{Reader: k.Reader, Getenv: getenv},
		usage:   resource.NewProviderConfigUsageTracker(k.Client, &storeplanev1.ProviderConfigUsage{}),
		images:  own,
		witness: witness,
		now:     time.Now,
		draw:    draw,
		record:  record,
		metrics: metrics,
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
	deletion Deletion
}

var errNotBackup = errors.New("cannot reconcile: the managed resource is no Backup")

// Observe reads the state, decides, and writes the Backup's status.
func (e *external) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	b, ok := mg.(*backupv1.Backup)
	if !ok {
		return managed.ExternalObservation{}, errNotBackup
	}
	s, err := e.readState(ctx, b)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if xpmeta.WasDeleted(b) {
		return e.observeDeletion(s)
	}
	d, err := Decide(s)
	if err != nil {
		return managed.ExternalObservation{}, fmt.Errorf("cannot decide what to do about Backup %s/%s: %w", b.Namespace, b.Name, err)
	}
	e.decision = d
	for _, n := range d.Events {
		e.record.Event(b, n)
	}
	e.metrics.Observe(b, d.Observation, d.Periods)
	setStatus(b, &d)
	return managed.ExternalObservation{ResourceExists: d.Exists, ResourceUpToDate: d.UpToDate()}, nil
}

// setStatus writes what was decided to a Backup's status.
func setStatus(b *backupv1.Backup, d *Decision) {
	b.Status.AtProvider = d.Observation
	for _, c := range d.Conditions {
		b.SetConditions(c.WithObservedGeneration(b.Generation))
	}
	progress.Report(b, isStalled(b), d.Exists && d.UpToDate())
}

// final are the reasons that only a change fixes, of the Backup or of an object that it finds in
// its place. All others may be fixed by an object that is applied later, or by a retry.
var final = []xpv2.ConditionReason{
	backupv1.ReasonInvalidSchedule,
	backupv1.ReasonDestinationInvalid,
	backupv1.ReasonInvalidTask,
	backupv1.ReasonVersionUnknown,
	backupv1.ReasonAlreadyExists,
	backupv1.ReasonEscrowDiffers,
}

// isStalled reports whether a Backup does not become Ready without a change.
func isStalled(b *backupv1.Backup) bool {
	return slices.Contains(final, b.GetCondition(xpv2.TypeReady).Reason)
}

func (e *external) observeDeletion(s *State) (managed.ExternalObservation, error) {
	d, err := DecideDeletion(s)
	if err != nil {
		return managed.ExternalObservation{}, fmt.Errorf("cannot decide how to delete Backup %s/%s: %w", s.Backup.Namespace, s.Backup.Name, err)
	}
	e.deletion = d
	s.Backup.Status.AtProvider.Phase = backupv1.BackupDeleting
	s.Backup.SetConditions(xpv2.Deleting().WithObservedGeneration(s.Backup.Generation))
	return managed.ExternalObservation{ResourceExists: !d.Done, ResourceUpToDate: true}, nil
}

// Create creates the objects that every Backup has, and carries out the rest of the decision.
func (e *external) Create(ctx context.Context, _ resource.Managed) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.act(ctx)
}

// Update carries out the decision.
func (e *external) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	if err := e.act(ctx); err != nil {
		return managed.ExternalUpdate{}, err
	}
	if b, ok := mg.(*backupv1.Backup); ok {
		progress.Report(b, isStalled(b), true)
	}
	return managed.ExternalUpdate{}, nil
}

func (e *external) act(ctx context.Context) error {
	d := &e.decision
	for _, c := range d.Resume {
		if err := e.kube.Resume(ctx, c, e.now()); err != nil {
			return err
		}
	}
	for _, o := range d.Apply {
		if err := e.kube.Apply(ctx, o); err != nil {
			return err
		}
	}
	for _, j := range d.Create {
		if err := e.kube.Create(ctx, j); err != nil {
			return err
		}
	}
	for _, o := range d.Remove {
		if err := e.kube.Remove(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes the backups, if they are to be deleted. It returns an error while that does not
// succeed.
func (e *external) Delete(ctx context.Context, _ resource.Managed) (managed.ExternalDelete, error) {
	for _, o := range e.deletion.Remove {
		if err := e.kube.Remove(ctx, o); err != nil {
			return managed.ExternalDelete{}, err
		}
	}
	if j := e.deletion.Create; j != nil {
		if p := e.deletion.Policy; p != nil {
			if err := e.kube.Apply(ctx, p); err != nil {
				return managed.ExternalDelete{}, err
			}
		}
		if err := e.kube.Create(ctx, j); err != nil {
			return managed.ExternalDelete{}, err
		}
	}
	return managed.ExternalDelete{}, e.deletion.Failed
}

// Disconnect does nothing: there is no connection.
func (e *external) Disconnect(context.Context) error { return nil }
