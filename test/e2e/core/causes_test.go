//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storeplane/storeplane/internal/podfailure"
	"github.com/storeplane/storeplane/test/e2e/causes"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// causesNamespace is the namespace of the WebApps that fail.
const causesNamespace = "e2e-core-causes"

// namedWithin is how long a claim may take to name a cause that the cluster has reported. A quick run is for every change
// on any machine, and checks that the cause is named rather than speed: it allows twice that.
const namedWithin = 10 * time.Second

// namesCauses applies a WebApp for each cause at once.
func namesCauses(ctx context.Context, n notes) error {
	if err := cluster.CreateNamespace(ctx, causesNamespace); err != nil {
		return err
	}
	if _, err := cluster.Kube.CoreV1().ResourceQuotas(causesNamespace).Create(ctx, causes.Devices(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create a quota: %w", err)
	}
	w, err := cluster.Watch(ctx, causesNamespace)
	if err != nil {
		return err
	}
	defer w.Stop()
	all := causes.All(cluster.Registry)
	for _, c := range all {
		if _, err := cluster.Create(ctx, claimIn(causesNamespace, "apps.example.com/v1", "WebApp", c.Name, c.Spec)); err != nil {
			return err
		}
	}
	within := namedWithin
	if !tests.Full() {
		within *= 2
	}
	var errs []error
	for _, c := range all {
		err := w.Await(ctx, settled, fmt.Sprintf("WebApp %s to say %q", c.Name, c.Says), func() (bool, string) {
			claim := w.Claim("WebApp", c.Name)
			return strings.Contains(claim.Status.Message, c.Says), claim.String()
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		reported, named := began(c, w), said(c, w)
		if reported.IsZero() {
			errs = append(errs, fmt.Errorf("WebApp %s names a cause of kind %s that nothing reported", c.Name, c.Kind))
			continue
		}
		n.Addf("%s after %.1fs", c.Name, named.Sub(reported).Seconds())
		if took := named.Sub(reported); took > within {
			errs = append(errs, fmt.Errorf("WebApp %s named its cause %s after it was reported, want %s", c.Name, took, within))
		}
	}
	// Delete them, because failing pods use CPU too.
	for _, c := range all {
		errs = append(errs, cluster.Delete(ctx, "WebApp", causesNamespace, c.Name))
	}
	return errors.Join(errs...)
}

// began returns when the cluster first reported the cause. For a state that becomes a failure only
// with time, it returns when that time had passed.
func began(c causes.Cause, w *harness.World) time.Time {
	var first time.Time
	for _, k := range w.Keys() {
		if !strings.HasPrefix(k.Name, c.Name+"-") {
			continue
		}
		for _, v := range w.History(k.Kind, k.Name) {
			if (first.IsZero() || v.At.Before(first)) && isIn(c, k.Kind, v) {
				first = v.At
			}
		}
	}
	if !first.IsZero() && (c.Kind == podfailure.Unready || c.Kind == podfailure.Preparing) {
		return first.Add(podfailure.StartFor)
	}
	return first
}

// isIn reports whether a version of an object reports the cause. A state that becomes a failure
// only with time counts from its beginning.
func isIn(c causes.Cause, kind string, v harness.Version) bool {
	switch {
	case kind == "Deployment" && c.Kind == "":
		d := &k8sappsv1.Deployment{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(v.Object.Object, d) != nil {
			return false
		}
		for _, cond := range d.Status.Conditions {
			if cond.Type == k8sappsv1.DeploymentReplicaFailure {
				return true
			}
		}
	case kind == "Pod":
		p := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(v.Object.Object, p) != nil {
			return false
		}
		f := podfailure.Why(&corev1.Pod{Status: p.Status}, v.At.Add(time.Minute))
		return f != nil && f.Kind == c.Kind
	}
	return false
}

// said returns when the claim first named the cause.
func said(c causes.Cause, w *harness.World) time.Time {
	for _, v := range w.History("WebApp", c.Name) {
		if strings.Contains(harness.ClaimOf(v.Object).Status.Message, c.Says) {
			return v.At
		}
	}
	return time.Time{}
}
