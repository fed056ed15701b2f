//go:build e2e

// Package causes lists the reasons why pods of a WebApp do not become ready, as a user who is new
// to it could cause them.
package causes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/podfailure"
)

// Devices returns the quota that makes Kubernetes refuse pods that request a device.
func Devices() *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "devices"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.example.com/device": resource.MustParse("0")}},
	}
}

// Cause is a WebApp whose pods do not become ready.
type Cause struct {
	// Name is the name of the WebApp.
	Name string

	// Spec is the spec of the WebApp. If it has no image, it gets one that has a shell.
	Spec map[string]any

	// Kind is the kind of failure, or "" for pods that are not created.
	Kind podfailure.Kind

	// Says is a text that the claim's message must contain.
	Says string
}

// All returns all causes that the API server, the scheduler and the kubelet report, with images of
// the given registry. Cause "quota" needs the ResourceQuota of Devices in its namespace.
func All(registry string) []Cause {
	imageOf := func(name string) string { return registry + "/" + name }
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
	all := []Cause{
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
		{"no-mount", with(serve(), "volumes", volume("secret", map[string]any{"secretName": "absent"})), podfailure.Preparing, "These must exist: Secret absent"},
		{"migration", with(serve(), "migration", map[string]any{"command": []any{"sh", "-c", "echo no schema; exit 4"}}), podfailure.CrashLoop, "container migration keeps failing: exit code 4: no schema"},
	}
	for _, c := range all {
		if c.Spec["image"] == nil {
			c.Spec["image"] = imageOf("postgresql:17")
		}
	}
	return all
}
