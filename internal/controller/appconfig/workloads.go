package appconfig

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/label"
	"github.com/storeplane/storeplane/internal/structs"
)

// workload is what the kinds of targets have in common.
type workload struct {
	Key

	// containers are those that the AppConfig names, or none.
	containers []string

	// object is nil if there is none, or it is being deleted.
	object   client.Object
	template *corev1.PodTemplateSpec
	selector *metav1.LabelSelector

	// slim is the object without those fields that its health does not depend on.
	slim any

	paused bool
	pods   int32

	// held is true for a Deployment that is paused and has no pods.
	held bool

	observed bool

	// replaces is true if the StatefulSet's controller replaces pods by itself, and partition is
	// the ordinal from which on it does.
	replaces  bool
	partition int32
}

// newObject returns an empty object of a kind.
func newObject(k configv1.TargetKind) client.Object {
	switch k {
	case configv1.Deployment:
		return &appsv1.Deployment{}
	case configv1.StatefulSet:
		return &appsv1.StatefulSet{}
	case configv1.DaemonSet:
		return &appsv1.DaemonSet{}
	case configv1.CronJob:
	}
	return &batchv1.CronJob{}
}

// apiVersion returns the API version of a kind.
func apiVersion(k configv1.TargetKind) string {
	if k == configv1.CronJob {
		return batchv1.SchemeGroupVersion.String()
	}
	return appsv1.SchemeGroupVersion.String()
}

// kindOf returns the kind of an object.
func kindOf(o client.Object) configv1.TargetKind {
	switch o.(type) {
	case *appsv1.Deployment:
		return configv1.Deployment
	case *appsv1.StatefulSet:
		return configv1.StatefulSet
	case *appsv1.DaemonSet:
		return configv1.DaemonSet
	}
	return configv1.CronJob
}

// workloads returns the targets of an AppConfig in the order of the rollout, from the cache.
func (e *external) workloads(ctx context.Context, a *configv1.AppConfig) ([]*workload, error) {
	p := &a.Spec.ForProvider
	if len(p.Targets) == 0 {
		return e.selected(ctx, a, appconfig.Labels(p))
	}
	out := make([]*workload, 0, len(p.Targets))
	for _, t := range p.Targets {
		o := newObject(t.Kind)
		err := e.kube.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: t.Name}, o)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot get %s %s/%s: %w", t.Kind, a.Namespace, t.Name, err)
		}
		if err != nil {
			o = nil
		}
		w := read(Key{Kind: t.Kind, Name: t.Name}, o)
		w.containers = t.Containers
		out = append(out, w)
	}
	return out, nil
}

// selected returns the workloads that have labels. Those of Storeplane's claims have labels that
// were not chosen for an AppConfig, such as the name redis: they are targets only if their
// annotation allows it.
func (e *external) selected(ctx context.Context, a *configv1.AppConfig, labels map[string]string) ([]*workload, error) {
	var out []*workload
	add := func(o client.Object) {
		byChance := o.GetLabels()[label.ManagedBy] == label.Storeplane && !appconfig.Allows(o.GetAnnotations(), a.Name)
		// One that is being deleted is no target any more.
		if o.GetDeletionTimestamp() == nil && !byChance {
			out = append(out, read(Key{Kind: kindOf(o), Name: o.GetName()}, o))
		}
	}
	deployments, sets, daemons, crons := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &batchv1.CronJobList{}
	for _, l := range []client.ObjectList{deployments, sets, daemons, crons} {
		if err := e.kube.Client.List(ctx, l, client.InNamespace(a.Namespace), client.MatchingLabels(labels)); err != nil {
			return nil, fmt.Errorf("cannot list %T of namespace %s: %w", l, a.Namespace, err)
		}
	}
	for i := range deployments.Items {
		add(&deployments.Items[i])
	}
	for i := range sets.Items {
		add(&sets.Items[i])
	}
	for i := range daemons.Items {
		add(&daemons.Items[i])
	}
	for i := range crons.Items {
		add(&crons.Items[i])
	}
	slices.SortFunc(out, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// read returns what the kinds of targets have in common. The object may be nil.
func read(k Key, o client.Object) *workload {
	w := &workload{Key: k}
	if o == nil || o.GetDeletionTimestamp() != nil {
		return w
	}
	w.object, w.pods = o, 1
	meta := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), Generation: o.GetGeneration()}
	kind := metav1.TypeMeta{APIVersion: apiVersion(k.Kind), Kind: string(k.Kind)}
	switch o := o.(type) {
	case *appsv1.Deployment:
		w.template, w.selector, w.paused = &o.Spec.Template, o.Spec.Selector, o.Spec.Paused
		w.held = o.Spec.Paused && o.Status.Replicas == 0
		w.observed = o.Status.ObservedGeneration >= o.Generation
		w.replicas(o.Spec.Replicas)
		slim := &appsv1.Deployment{TypeMeta: kind, ObjectMeta: meta, Spec: o.Spec, Status: o.Status}
		slim.Spec.Template, slim.Spec.Selector = corev1.PodTemplateSpec{}, nil
		w.slim = slim
	case *appsv1.StatefulSet:
		w.template, w.selector = &o.Spec.Template, o.Spec.Selector
		w.observed = o.Status.ObservedGeneration >= o.Generation
		w.replicas(o.Spec.Replicas)
		w.replaces = o.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
		if r := o.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
			w.partition = *r.Partition
		}
		slim := &appsv1.StatefulSet{TypeMeta: kind, ObjectMeta: meta, Spec: o.Spec, Status: o.Status}
		slim.Spec.Template, slim.Spec.Selector, slim.Spec.VolumeClaimTemplates = corev1.PodTemplateSpec{}, nil, nil
		w.slim = slim
	case *appsv1.DaemonSet:
		w.template, w.selector, w.pods = &o.Spec.Template, o.Spec.Selector, o.Status.DesiredNumberScheduled
		w.observed = o.Status.ObservedGeneration >= o.Generation
		slim := &appsv1.DaemonSet{TypeMeta: kind, ObjectMeta: meta, Spec: o.Spec, Status: o.Status}
		slim.Spec.Template, slim.Spec.Selector = corev1.PodTemplateSpec{}, nil
		w.slim = slim
	case *batchv1.CronJob:
		w.template = &o.Spec.JobTemplate.Spec.Template
	}
	return w
}

func (w *workload) replicas(n *int32) {
	if n != nil {
		w.pods = *n
	}
}

// health returns the health of a workload. A CronJob is always healthy.
func (w *workload) health() health.Status {
	if w.slim == nil {
		return health.Status{State: health.Healthy}
	}
	s, err := structs.Encode(w.slim)
	if err != nil {
		return health.Status{State: health.Progressing, Message: "Its status cannot be read"}
	}
	return health.Of(s)
}

// target returns the workload as a decision needs it.
func (w *workload) target(a *configv1.AppConfig) Target {
	t := Target{Key: w.Key, Missing: w.object == nil || w.held && appconfig.ByOwner(&a.Spec.ForProvider)}
	if t.Missing {
		return t
	}
	if annotations := w.object.GetAnnotations(); !appconfig.Allows(annotations, a.Name) {
		t.Closed = appconfig.Allow(annotations, a.Name)
	}
	r := appconfig.RunOf(a.Name, a.Spec.ForProvider.Application, w.template.Annotations, &w.template.Spec)
	t.Bundle, t.Annotated, t.Reader = r.Bundle, r.Annotated, r.Reader
	t.Paused, t.Health, t.Current = w.paused, w.health(), true
	return t
}

// plan returns how to bring a bundle into a workload. A reader refers to the stable name and only
// gets the annotation.
func (w *workload) plan(a *configv1.AppConfig, bundle string, c appconfig.Content, reader bool) appconfig.Plan {
	i := appconfig.Injection{AppConfig: a.Name, Params: &a.Spec.ForProvider, Bundle: bundle, Content: c, Containers: w.containers}
	if reader {
		return i.Annotate(w.template.Annotations)
	}
	return i.Into(w.template.Annotations, &w.template.Spec)
}

// body returns the body of a server-side apply of a planned template. With the UID, the request
// does not create a workload that was just deleted.
func (w *workload) body(template map[string]any) map[string]any {
	spec := map[string]any{"template": template}
	if w.Kind == configv1.CronJob {
		spec = map[string]any{"jobTemplate": map[string]any{"spec": spec}}
	}
	return map[string]any{
		"apiVersion": apiVersion(w.Kind), "kind": string(w.Kind),
		"metadata": map[string]any{"namespace": w.object.GetNamespace(), "name": w.Name, "uid": string(w.object.GetUID())},
		"spec":     spec,
	}
}

// refusalOf returns the Refusal that an error of the API server means, or nil for any other error.
func refusalOf(err error) *Refusal {
	switch {
	case kerrors.IsForbidden(err):
		return &Refusal{State: configv1.TargetForbidden, Reason: configv1.ReasonForbidden, Message: "The API server forbids the change: " + short(err)}
	case kerrors.IsConflict(err):
		return &Refusal{State: configv1.TargetConflict, Reason: configv1.ReasonFieldManagerConflict, Message: "Another field manager owns its fields: " + owners(err)}
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err):
		return &Refusal{State: configv1.TargetConflict, Reason: configv1.ReasonInvalid, Message: "The API server does not accept the change: " + short(err)}
	}
	return nil
}
