package appconfig

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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/progress"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// Connector creates a client for one reconciliation of one AppConfig.
type Connector struct {
	// Now returns the time.
	Now func() time.Time

	kube    kube.Kube
	logs    Logs
	budget  int
	record  event.Recorder
	metrics *telemetry.AppConfigs
	notes   *notes
	ledger  *ledger
}

// NewConnector returns a Connector for AppConfigs. At most budget workloads of a namespace are
// rolled out at a time.
func NewConnector(k kube.Kube, logs Logs, budget int, record event.Recorder, metrics *telemetry.AppConfigs) *Connector {
	return &Connector{kube: k, logs: logs, budget: budget, record: record, metrics: metrics, Now: time.Now, notes: newNotes(), ledger: newLedger()}
}

// Connect returns a client. It connects to nothing, since all is in the API server.
func (c *Connector) Connect(_ context.Context, mg resource.Managed) (managed.ExternalClient, error) {
	key := types.NamespacedName{Namespace: mg.GetNamespace(), Name: mg.GetName()}
	return &external{Connector: c, note: c.notes.of(key), contents: map[string]appconfig.Content{}}, nil
}

// Again returns after what time an AppConfig is to be reconciled again, or zero.
func (c *Connector) Again(mg resource.Managed) time.Duration {
	return c.notes.of(types.NamespacedName{Namespace: mg.GetNamespace(), Name: mg.GetName()}).again
}

// Forget drops what is remembered of an AppConfig that was deleted.
func (c *Connector) Forget(key types.NamespacedName) {
	c.notes.forget(key)
	c.ledger.forget(key)
}

// external carries out what Observe decided.
type external struct {
	*Connector

	note     *note
	contents map[string]appconfig.Content
	loads    map[Key]*workload
	existed  existing

	decision Decision
	garbage  []client.Object
	unowned  []*metav1.PartialObjectMetadata
}

var errNotAppConfig = errors.New("cannot reconcile: the managed resource is no AppConfig")

// Observe reads the state, decides, and records which bundle is to run before any target is
// changed.
func (e *external) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	a, ok := mg.(*configv1.AppConfig)
	if !ok {
		return managed.ExternalObservation{}, errNotAppConfig
	}
	e.note.again = 0
	if e.note.older(a) {
		newest := &configv1.AppConfig{}
		if err := e.kube.Reader.Get(ctx, client.ObjectKeyFromObject(a), newest); err != nil {
			return managed.ExternalObservation{}, fmt.Errorf("cannot get AppConfig %s/%s: %w", a.Namespace, a.Name, err)
		}
		newest.DeepCopyInto(a)
	}
	e.note.last = a
	if xpmeta.WasDeleted(a) {
		return e.observeDeletion(ctx, a)
	}
	s, err := e.readState(ctx, a)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	others, err := e.others(ctx, a)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	known := a.Status.AtProvider.DeepCopy()
	d := e.ledger.decide(s, others)
	if d.Make {
		if err := e.make(ctx, a, s.Wanted, e.contents[s.Wanted]); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	e.decision, e.note.again = d, d.Again
	setStatus(a, &d)
	// Before a change the status is written even if it is the same: if what was read is out of
	// date, the write fails before anything is done.
	if d.Acts() || !equality.Semantic.DeepEqual(known, &d.Observation) {
		if err := e.kube.Client.Status().Update(ctx, a); err != nil {
			return managed.ExternalObservation{}, fmt.Errorf("cannot record what AppConfig %s/%s shall run: %w", a.Namespace, a.Name, err)
		}
	}
	for _, n := range d.Events {
		e.record.Event(a, n)
	}
	e.metrics.Observe(string(d.Ended), d.Took)
	if e.garbage, err = e.collectable(ctx, s, d); err != nil {
		return managed.ExternalObservation{}, err
	}
	e.unowned = e.existed.unowned(a)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: !d.Acts() && len(e.garbage) == 0 && len(e.unowned) == 0}, nil
}

// setStatus writes what was decided to an AppConfig's status.
func setStatus(a *configv1.AppConfig, d *Decision) {
	a.Status.AtProvider = d.Observation
	for _, c := range d.Conditions {
		a.SetConditions(c.WithObservedGeneration(a.Generation))
	}
	progress.Report(a, isStalled(a), !d.Acts())
}

// isStalled reports whether an AppConfig has given up a rollout, or cannot be rendered. A missing
// Secret does not count: it may be applied after the AppConfig.
func isStalled(a *configv1.AppConfig) bool {
	switch a.GetCondition(xpv2.TypeReady).Reason {
	case configv1.ReasonRolledBack, configv1.ReasonRolloutFailed:
		return true
	case configv1.ReasonInvalidConfig:
		rendered := a.GetCondition(TypeRendered).Reason
		return rendered != configv1.ReasonSecretNotFound && rendered != configv1.ReasonSecretKeyNotFound
	default:
		return false
	}
}

// Create is never called: bundles are created by Observe, and all else is changed by Update.
func (e *external) Create(context.Context, resource.Managed) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

// Update carries out the decision. If the change of one object fails, the others are changed
// nevertheless.
func (e *external) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	a, ok := mg.(*configv1.AppConfig)
	if !ok {
		return managed.ExternalUpdate{}, errNotAppConfig
	}
	d := &e.decision
	if d.Publish != "" {
		// Targets may read the stable name, so it comes first.
		if err := e.publish(ctx, a, d.Publish); err != nil {
			return managed.ExternalUpdate{}, err
		}
	}
	var errs []error
	for _, k := range d.Patch {
		errs = append(errs, e.patch(ctx, a, e.loads[k]))
	}
	for _, p := range d.Evict {
		errs = append(errs, e.kube.Remove(ctx, &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: p.Name, UID: types.UID(p.UID)},
		}))
	}
	for _, o := range e.garbage {
		errs = append(errs, e.kube.Remove(ctx, o))
	}
	errs = append(errs, e.own(ctx, a, e.unowned))
	if err := errors.Join(errs...); err != nil {
		return managed.ExternalUpdate{}, err
	}
	progress.Report(a, isStalled(a), len(d.Patch) == 0)
	return managed.ExternalUpdate{}, nil
}

// patch changes a target so that it runs the bundle in the status. A refusal is written to the
// status.
func (e *external) patch(ctx context.Context, a *configv1.AppConfig, w *workload) error {
	bundle := a.Status.AtProvider.Bundle
	c, found, err := e.content(ctx, a, bundle)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("cannot change %s %s/%s: bundle %s is gone", w.Kind, a.Namespace, w.Name, bundle)
	}
	reader := appconfig.RunOf(a.Name, a.Spec.ForProvider.Application, w.template.Annotations, &w.template.Spec).Reader
	p := w.plan(a, bundle, c, reader)
	if p.Refusal != "" {
		e.refuse(a, w, bundle, Refusal{State: configv1.TargetConflict, Reason: configv1.ReasonInvalid, Message: "It " + p.Refusal})
		return nil
	}
	u := &unstructured.Unstructured{Object: w.body(p.Template)}
	err = e.kube.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(appconfig.FieldManager(a.Name)))
	switch {
	case err == nil:
		e.note.patched[w.Key] = patched{uid: w.object.GetUID(), generation: u.GetGeneration(), bundle: bundle}
		delete(e.note.refused, w.Key)
		return nil
	case kerrors.IsNotFound(err):
		return nil
	}
	if r := refusalOf(err); r != nil {
		e.refuse(a, w, bundle, *r)
		return nil
	}
	return fmt.Errorf("cannot change %s %s/%s: %w", w.Kind, a.Namespace, w.Name, err)
}

// refuse records that a change was refused, so that it is not retried before the time retry has
// passed.
func (e *external) refuse(a *configv1.AppConfig, w *workload, bundle string, r Refusal) {
	now := e.Now()
	e.note.refused[w.Key] = refused{Refusal: r, uid: w.object.GetUID(), bundle: bundle, until: now.Add(retry)}
	for i := range a.Status.AtProvider.Targets {
		t := &a.Status.AtProvider.Targets[i]
		if t.Kind == w.Kind && t.Name == w.Name && (t.State != r.State || t.Reason != r.Reason || t.Message != r.Message) {
			if t.State != r.State {
				t.Since = new(metav1.NewTime(now))
			}
			t.State, t.Reason, t.Message = r.State, r.Reason, r.Message
			// The conditions must report it too.
			e.note.again = time.Second
		}
	}
}

// Disconnect does nothing: there is no connection.
func (e *external) Disconnect(context.Context) error { return nil }

// deleting sets condition Ready of an AppConfig that is being deleted.
func deleting(a *configv1.AppConfig) {
	a.SetConditions(xpv2.Deleting().WithObservedGeneration(a.Generation))
}
