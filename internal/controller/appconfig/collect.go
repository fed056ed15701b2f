package appconfig

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// minInterval and maxInterval are the shortest and the longest pause between two searches for
// old bundles that are not in use: the end of a rollout leaves some behind, and little else does.
const (
	minInterval = 5 * time.Minute
	maxInterval = 6 * time.Hour
	// youth is how old a bundle must be to be removed: pods that use it may be about to be created.
	youth = time.Minute
)

// collectable returns the objects of old bundles that nothing refers to, if a search is due.
func (e *external) collectable(ctx context.Context, s *State, d Decision) ([]client.Object, error) {
	if s.Frozen {
		return nil, nil
	}
	candidates := e.candidates(s, d)
	if len(candidates) == 0 {
		return nil, nil
	}
	switch {
	case d.Ended == Succeeded, d.Ended == RolledBack:
		e.note.interval = 0
	case e.note.collected.IsZero():
		// The provider has just started, and there may be many AppConfigs to search for.
		e.note.collected, e.note.interval = s.Now, telemetry.Jitter(minInterval)
		return nil, nil
	case s.Now.Sub(e.note.collected) < e.note.interval:
		return nil, nil
	}
	used, err := e.referred(ctx, s.AppConfig.Namespace, candidates)
	if err != nil {
		return nil, err
	}
	e.note.collected, e.note.interval = s.Now, min(max(minInterval, 2*e.note.interval), maxInterval)
	return e.objectsOf(s.AppConfig.Namespace, candidates, used), nil
}

// candidates returns the bundles that the AppConfig itself does not need.
func (e *external) candidates(s *State, d Decision) []string {
	o := &d.Observation
	kept := []string{s.Wanted, o.Bundle, o.LastGood, o.Pending}
	if o.Failed != nil {
		kept = append(kept, o.Failed.Bundle)
	}
	// While there is a problem, it is not known which bundle is wanted once it is fixed.
	if s.Problem != nil {
		return nil
	}
	return slices.DeleteFunc(e.existed.bundles(s.params().Application), func(name string) bool {
		return slices.Contains(kept, name) || s.Now.Sub(e.existed.made(name)) < youth
	})
}

// made returns when the newer one of a bundle's objects was created.
func (x existing) made(name string) time.Time {
	var out time.Time
	for _, m := range []*metav1.PartialObjectMetadata{x.configs[name], x.secrets[name]} {
		if m != nil && m.CreationTimestamp.After(out) {
			out = m.CreationTimestamp.Time
		}
	}
	return out
}

// objectsOf returns the objects of the names that are not in used.
func (e *external) objectsOf(namespace string, names []string, used map[string]bool) []client.Object {
	var out []client.Object
	for _, n := range names {
		if used[n] {
			continue
		}
		if m := e.existed.configs[n]; m != nil {
			out = append(out, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n, UID: m.UID}})
		}
		if m := e.existed.secrets[n]; m != nil {
			out = append(out, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n, UID: m.UID}})
		}
	}
	return out
}

// page is how many objects are listed in one request.
const page = 500

// referred returns the names of ConfigMaps and Secrets that are in use, among them those of names:
// by all that could start a pod with them, which includes old ReplicaSets and ControllerRevisions
// that a workload could be rolled back to. Workloads and pods are read past the cache, since one
// that is not in the cache yet could need a bundle.
func (e *external) referred(ctx context.Context, namespace string, names []string) (map[string]bool, error) {
	used := map[string]bool{}
	spec := func(annotations map[string]string, s *corev1.PodSpec) {
		for _, n := range appconfig.References(s) {
			used[n] = true
		}
		for _, n := range annotations {
			used[n] = true
		}
	}
	template := func(t *corev1.PodTemplateSpec) { spec(t.Annotations, &t.Spec) }

	deployments, sets, daemons, crons := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &batchv1.CronJobList{}
	replicas, revisions, jobs, pods := &appsv1.ReplicaSetList{}, &appsv1.ControllerRevisionList{}, &batchv1.JobList{}, &corev1.PodList{}
	for _, l := range []struct {
		list client.ObjectList
		each func()
	}{
		{deployments, func() { all(deployments.Items, func(o *appsv1.Deployment) { template(&o.Spec.Template) }) }},
		{sets, func() { all(sets.Items, func(o *appsv1.StatefulSet) { template(&o.Spec.Template) }) }},
		{daemons, func() { all(daemons.Items, func(o *appsv1.DaemonSet) { template(&o.Spec.Template) }) }},
		{crons, func() { all(crons.Items, func(o *batchv1.CronJob) { template(&o.Spec.JobTemplate.Spec.Template) }) }},
		{replicas, func() { all(replicas.Items, func(o *appsv1.ReplicaSet) { template(&o.Spec.Template) }) }},
		{revisions, func() {
			all(revisions.Items, func(o *appsv1.ControllerRevision) {
				for _, n := range names {
					if appconfig.Mentions(o.Data.Raw, n) {
						used[n] = true
					}
				}
			})
		}},
		{jobs, func() {
			all(jobs.Items, func(o *batchv1.Job) {
				if !hasEnded(o) {
					template(&o.Spec.Template)
				}
			})
		}},
		{pods, func() { all(pods.Items, func(o *corev1.Pod) { spec(o.Annotations, &o.Spec) }) }},
	} {
		if err := e.pages(ctx, namespace, l.list, l.each); err != nil {
			return nil, err
		}
	}
	others, err := e.recorded(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, n := range others {
		used[n] = true
	}
	return used, nil
}

func all[T any](items []T, each func(*T)) {
	for i := range items {
		each(&items[i])
	}
}

// pages lists objects page by page, and calls each after every page.
func (e *external) pages(ctx context.Context, namespace string, l client.ObjectList, each func()) error {
	for {
		if err := e.kube.Reader.List(ctx, l, client.InNamespace(namespace), client.Limit(page), client.Continue(l.GetContinue())); err != nil {
			return fmt.Errorf("cannot list %T of namespace %s: %w", l, namespace, err)
		}
		each()
		if l.GetContinue() == "" {
			return nil
		}
	}
}

func hasEnded(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// recorded returns the bundles in the status of the AppConfigs of a namespace: two with the same
// application and content share a bundle.
func (e *external) recorded(ctx context.Context, namespace string) ([]string, error) {
	l := &configv1.AppConfigList{}
	if err := e.kube.Client.List(ctx, l, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the AppConfigs of namespace %s: %w", namespace, err)
	}
	var out []string
	for i := range l.Items {
		o := &l.Items[i].Status.AtProvider
		if l.Items[i].DeletionTimestamp == nil {
			out = append(out, o.Bundle, o.LastGood, o.Pending)
		}
	}
	return out, nil
}
