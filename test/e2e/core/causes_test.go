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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storeplane/storeplane/internal/podfailure"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// causesNamespace is where WebApps fail.
const causesNamespace = "e2e-core-causes"

// named is how long a claim may take to name a cause that the cluster knows.
const named = 10 * time.Second

// cause of pods that do not come up, as a newcomer makes it.
type cause struct {
	name string

	// spec of the WebApp. An image of its own takes the place of one with a shell.
	spec map[string]any

	// kind of failure, or "" for pods that are not created.
	kind podfailure.Kind

	// says what the claim's message must hold.
	says string
}

// causes that the API server, the scheduler and the kubelet report.
func causes() []cause {
	run := func(command ...any) map[string]any { return map[string]any{"command": command} }
	with := func(spec map[string]any, field string, value any) map[string]any {
		spec[field] = value
		return spec
	}
	serve := func() map[string]any { return run("python3", "-m", "http.server", "8080", "--directory", "/tmp") }
	ref := func(kind, name, key string) []any {
		return []any{map[string]any{"name": "SETTING", "valueFrom": map[string]any{kind: map[string]any{"name": name, "key": key}}}}
	}
	volume := func(source string, of map[string]any) []any {
		return []any{map[string]any{"name": "data", "mountPath": "/data", source: of}}
	}
	missing := imageOf("postgresql:no-such-version")
	return []cause{
		{"no-image", map[string]any{"image": missing}, podfailure.ImagePull, "cannot pull image " + missing + ": not found"},
		{"no-registry", map[string]any{"image": "127.0.0.1:1/app:1"}, podfailure.ImagePull, "cannot pull image 127.0.0.1:1/app:1: the registry does not answer"},
		{"root", map[string]any{"image": imageOf("e2e-nginx:root"), "port": int64(80)}, podfailure.ContainerStart, "its image runs as root, which is not allowed: set runAsUser to the number of another user, or podSecurity to baseline outside production"},
		{"named-user", map[string]any{"image": imageOf("e2e-nginx:www-data"), "port": int64(80)}, podfailure.ContainerStart, "its image names its user www-data without a number, so that it might be root: set runAsUser to that user's number"},
		{"no-secret", with(serve(), "env", ref("secretKeyRef", "absent", "key")), podfailure.ContainerStart, `cannot start container app: secret "absent" not found`},
		{"no-key", with(serve(), "env", ref("configMapKeyRef", "kube-root-ca.crt", "absent")), podfailure.ContainerStart, "cannot start container app: couldn't find key absent in ConfigMap"},
		{"no-program", run("/no-such-program"), podfailure.CrashLoop, "no such file or directory"},
		{"crash", run("sh", "-c", "echo no table orders >&2; exit 3"), podfailure.CrashLoop, "container app keeps failing: exit code 3: no table orders"},
		{"read-only", run("sh", "-c", "echo x > /etc/x"), podfailure.CrashLoop, "mount a volume with emptyDir where it writes, or set podSecurity to baseline outside production"},
		{"memory", with(run("tail", "/dev/zero"), "resources", map[string]any{"limits": map[string]any{"memory": "32Mi"}}), podfailure.OutOfMemory, "container app keeps running out of memory"},
		{"init", with(serve(), "initContainers", []any{map[string]any{"name": "wait", "command": []any{"sh", "-c", "echo no queue; exit 7"}}}), podfailure.CrashLoop, "container wait keeps failing: exit code 7: no queue"},
		{"readiness", with(serve(), "probe", map[string]any{"path": "/absent"}), podfailure.Unready, "container app runs and does not pass its "},
		{"startup", run("sleep", "3600"), podfailure.Unready, "container app runs and does not pass its startup probe"},
		{"quota", with(serve(), "resources", map[string]any{"limits": map[string]any{"memory": "64Mi", "example.com/device": "1"}}), "", "cannot create pods: exceeded quota: devices, requested: requests.example.com/device=1"},
		{"processor", with(serve(), "resources", map[string]any{"requests": map[string]any{"cpu": "1000"}}), podfailure.Unschedulable, "cannot be scheduled: Insufficient cpu"},
		{"node", with(serve(), "nodeSelector", map[string]any{"disk": "none"}), podfailure.Unschedulable, "cannot be scheduled: node(s) didn't match Pod's node affinity/selector"},
		{"no-volume", with(serve(), "volumes", volume("persistentVolumeClaim", map[string]any{"claimName": "absent"})), podfailure.Unschedulable, `cannot be scheduled: persistentvolumeclaim "absent" not found`},
		{"no-mount", with(serve(), "volumes", volume("secret", map[string]any{"secretName": "absent"})), podfailure.Preparing, "its volumes are not mounted, for which must exist: Secret absent"},
		{"migration", with(serve(), "migration", map[string]any{"command": []any{"sh", "-c", "echo no schema; exit 4"}}), podfailure.CrashLoop, "container migration keeps failing: exit code 4: no schema"},
	}
}

// namesCauses applies a WebApp for each cause at once.
func namesCauses(ctx context.Context, n notes) error {
	if err := cluster.CreateNamespace(ctx, causesNamespace); err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "devices"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.example.com/device": resource.MustParse("0")}}}
	if _, err := cluster.Kube.CoreV1().ResourceQuotas(causesNamespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create a quota: %w", err)
	}
	w, err := cluster.Watch(ctx, causesNamespace)
	if err != nil {
		return err
	}
	defer w.Stop()
	all := causes()
	for _, c := range all {
		if c.spec["image"] == nil {
			c.spec["image"] = imageOf("postgresql:17")
		}
		if _, err := cluster.Create(ctx, claimIn(causesNamespace, "apps.example.com/v1", "WebApp", c.name, c.spec)); err != nil {
			return err
		}
	}
	var errs []error
	for _, c := range all {
		err := w.Await(ctx, settled, fmt.Sprintf("WebApp %s to say %q", c.name, c.says), func() (bool, string) {
			claim := w.Claim("WebApp", c.name)
			return strings.Contains(claim.Status.Message, c.says), claim.String()
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		began, said := c.began(w), c.said(w)
		if began.IsZero() {
			errs = append(errs, fmt.Errorf("WebApp %s names a cause of kind %s that nothing reported", c.name, c.kind))
			continue
		}
		n.Addf("%s after %.1fs", c.name, said.Sub(began).Seconds())
		if took := said.Sub(began); took > named {
			errs = append(errs, fmt.Errorf("WebApp %s named its cause %s after it was reported, want %s", c.name, took, named))
		}
	}
	// What fails takes its part of the processors, too.
	for _, c := range all {
		errs = append(errs, cluster.Delete(ctx, "WebApp", causesNamespace, c.name))
	}
	return errors.Join(errs...)
}

// began is when the cluster first reported the cause, or for what only time makes one when that
// had passed.
func (c *cause) began(w *harness.World) time.Time {
	var first time.Time
	for _, k := range w.Keys() {
		if !strings.HasPrefix(k.Name, c.name+"-") {
			continue
		}
		for _, v := range w.History(k.Kind, k.Name) {
			if (first.IsZero() || v.At.Before(first)) && c.isIn(k.Kind, v) {
				first = v.At
			}
		}
	}
	if !first.IsZero() && (c.kind == podfailure.Unready || c.kind == podfailure.Preparing) {
		return first.Add(podfailure.StartFor)
	}
	return first
}

// isIn tells whether a version of an object reports the cause. What only time makes a failure
// counts from the first.
func (c *cause) isIn(kind string, v harness.Version) bool {
	switch {
	case kind == "Deployment" && c.kind == "":
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
		f := podfailure.Why(podfailure.Pod{PodStatus: p.Status}, v.At.Add(time.Minute))
		return f != nil && f.Kind == c.kind
	}
	return false
}

// said is when the claim first named the cause.
func (c *cause) said(w *harness.World) time.Time {
	for _, v := range w.History("WebApp", c.name) {
		if strings.Contains(harness.ClaimOf(v.Object).Status.Message, c.says) {
			return v.At
		}
	}
	return time.Time{}
}
