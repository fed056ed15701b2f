package webapp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/build"
)

// webAppPods returns the pod specs of a claim that has settled, by component. That of a migration
// is under "migration", without the digest.
func webAppPods(t *testing.T, claim string) map[string]corev1.PodSpec {
	t.Helper()
	c := functionstest.New(t, claim)
	c.Settle()
	out := map[string]corev1.PodSpec{}
	for _, p := range functionstest.Pods(t, c.Observed) {
		name := p.Component
		if strings.HasPrefix(name, "migration-") {
			name = "migration"
		}
		out[name] = p.Spec
	}
	return out
}

// TestContainers: each pod has these containers, which start in this order.
func TestContainers(t *testing.T) {
	want := map[string][]string{
		"web":             {"sidecar proxy", "sidecar logs", "init warm-up", "app"},
		"worker-mailer":   {"sidecar proxy", "sidecar logs", "init warm-up", "worker"},
		"worker-mailer-x": {"sidecar proxy", "sidecar logs", "init warm-up", "worker"},
		"migration":       {"sidecar proxy", "sidecar logs", "migration"},
		"cron-clean":      {"sidecar proxy", "sidecar logs", "cron"},
	}
	got := map[string][]string{}
	for name, spec := range webAppPods(t, functionstest.FullApp) {
		for _, c := range spec.InitContainers {
			kind := "init "
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				kind = "sidecar "
			}
			got[name] = append(got[name], kind+c.Name)
		}
		for _, c := range spec.Containers {
			got[name] = append(got[name], c.Name)
		}
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			mounts := []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}, {Name: "scratch", MountPath: "/var/cache/hello"}, {Name: "shared", MountPath: "/data", ReadOnly: true}}
			if diff := cmp.Diff(mounts, c.VolumeMounts); diff != "" {
				t.Errorf("%s of %s mounts what all do: -want, +got:\n%s", c.Name, name, diff)
			}
		}
		if spec.PriorityClassName != "high" || spec.NodeSelector["disk"] != "fast" || len(spec.Tolerations) != 1 || spec.ImagePullSecrets[0].Name != "pull" {
			t.Errorf("%s runs where and as the claim says: got %v", name, spec)
		}
		if g := spec.SecurityContext.FSGroup; g == nil || *g == 0 {
			t.Errorf("%s: a volume claim can be written to by whatever user the image names: got group %v", name, g)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestContainerEnvironment: the environment of the application is only set in containers that run
// its image.
func TestContainerEnvironment(t *testing.T) {
	env := func(c *corev1.Container) []string {
		var out []string
		for _, e := range c.Env {
			out = append(out, e.Name+"="+e.Value)
		}
		for _, f := range c.EnvFrom {
			out = append(out, f.SecretRef.Name)
		}
		return out
	}
	cases := map[string]struct {
		reason    string
		container string
		image     string
		want      []string
	}{
		"Own":     {reason: "Another image has its own environment alone.", container: "{name: x, image: other:1, env: [{name: A, value: b}], envFrom: [{secretRef: {name: theirs}}]}", image: "other:1", want: []string{"A=b", "theirs"}},
		"None":    {reason: "Which may be none.", container: "{name: x, image: other:1}", image: "other:1"},
		"Same":    {reason: "The application's image has the application's.", container: "{name: x}", image: "app:1", want: []string{"PORT=8080", "MODE=full", "ours"}},
		"Replace": {reason: "Of one name its own wins, and what is its own comes last.", container: "{name: x, env: [{name: MODE, value: warm}, {name: B, value: c}], envFrom: [{secretRef: {name: theirs}}]}", image: "app:1", want: []string{"PORT=8080", "MODE=warm", "B=c", "ours", "theirs"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, field := range []string{"initContainers", "sidecars"} {
				pod := webAppPods(t, functionstest.WebApp("{image: 'app:1', env: [{name: MODE, value: full}], envFrom: [{secretRef: {name: ours}}], "+field+": ["+tc.container+"]}"))["web"]
				c := &pod.InitContainers[0]
				if c.Image != tc.image {
					t.Errorf("%s\n%s: want image %s, got %s", tc.reason, field, tc.image, c.Image)
				}
				if diff := cmp.Diff(tc.want, env(c)); diff != "" {
					t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, field, diff)
				}
				if diff := cmp.Diff([]string{"PORT=8080", "MODE=full", "ours"}, env(&pod.Containers[0])); diff != "" {
					t.Errorf("%s\nthe application's own stays: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestContainerResources: resources that a claim does not set have defaults, and those that it sets
// apply to that container only.
func TestContainerResources(t *testing.T) {
	const small = "{limits: {memory: 16Mi}, requests: {cpu: 1m, memory: 8Mi}}"
	pods := webAppPods(t, functionstest.WebApp(`{image: x, resources: {limits: {memory: 1Gi}, requests: {cpu: 1m, memory: 8Mi}},
  initContainers: [{name: a}, {name: b, resources: `+small+`}], sidecars: [{name: c}, {name: d, resources: `+small+`}],
  workers: [{name: e, args: [e]}, {name: f, args: [f], resources: `+small+`}],
  cronJobs: [{name: g, schedule: "@daily"}, {name: h, schedule: "@daily", resources: `+small+`}]}`))
	got := map[string]string{}
	for _, spec := range pods {
		for _, c := range spec.InitContainers {
			got[c.Name] = c.Resources.Limits.Memory().String()
		}
	}
	for _, n := range []string{"web", "worker-e", "worker-f", "cron-g", "cron-h"} {
		got[n] = pods[n].Containers[0].Resources.Limits.Memory().String()
	}
	want := map[string]string{
		"web": "1Gi", "a": "256Mi", "b": "16Mi", "c": "128Mi", "d": "16Mi",
		"worker-e": "1Gi", "worker-f": "16Mi", "cron-g": "1Gi", "cron-h": "16Mi",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestSidecarPort(t *testing.T) {
	pod := webAppPods(t, functionstest.WebApp("{image: x, sidecars: [{name: proxy, image: p, port: 6432}, {name: logs, image: l}]}"))["web"]
	proxy, logs := pod.InitContainers[0], pod.InitContainers[1]
	if p := proxy.StartupProbe; p == nil || p.TCPSocket.Port.IntVal != 6432 || proxy.Ports[0].ContainerPort != 6432 {
		t.Errorf("The application starts once its proxy listens: got %v", proxy)
	}
	if logs.StartupProbe != nil || len(logs.Ports) > 0 {
		t.Errorf("Without a port there is nothing to ask: got %v", logs)
	}
}

func TestVolumes(t *testing.T) {
	pod := webAppPods(t, functionstest.WebApp(`{image: x, volumes: [
  {name: conf, mountPath: /etc/hello, configMap: {name: hello, items: [{key: a, path: b/c}]}},
  {name: certs, mountPath: /etc/certs, secret: {secretName: certs}},
  {name: fast, mountPath: /run/hello, emptyDir: {medium: Memory, sizeLimit: 16Mi}}]}`))["web"]
	want := []corev1.Volume{
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Gi"))}}},
		{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "hello"}, Items: []corev1.KeyToPath{{Key: "a", Path: "b/c"}},
		}}},
		{Name: "certs", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "certs"}}},
		{Name: "fast", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("16Mi"))}}},
	}
	if diff := cmp.Diff(want, pod.Volumes); diff != "" {
		t.Errorf("volumes: -want, +got:\n%s", diff)
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.ReadOnly != (m.Name == "conf" || m.Name == "certs") {
			t.Errorf("ConfigMaps and Secrets are read-only, scratch is not: got %v", m)
		}
	}
	if pod.SecurityContext.FSGroup != nil {
		t.Errorf("Without a volume claim no group is needed: got %v", *pod.SecurityContext.FSGroup)
	}
}

// TestShutdown: a pod still answers requests while it is removed from its Service, and then has the
// time to stop that the claim sets.
func TestShutdown(t *testing.T) {
	cases := map[string]struct {
		reason           string
		spec             string
		serving, working int64
	}{
		"Default": {reason: "30 seconds after the drain.", spec: "image: x", serving: 35, working: 30},
		"Own":     {reason: "What the claim gives comes after the drain too.", spec: "image: x, terminationGracePeriodSeconds: 90", serving: 95, working: 90},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := webAppPods(t, functionstest.WebApp("{"+tc.spec+", workers: [{name: w, args: [w]}]}"))
			web, worker := pods["web"], pods["worker-w"]
			if got := *web.TerminationGracePeriodSeconds; got != tc.serving {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.serving, got)
			}
			if got := *worker.TerminationGracePeriodSeconds; got != tc.working {
				t.Errorf("%s\nA worker has no requests to drain: want %d, got %d", tc.reason, tc.working, got)
			}
			if got := web.Containers[0].Lifecycle.PreStop.Sleep.Seconds; got != 5 {
				t.Errorf("%s\nwant a drain of 5 seconds, got %d", tc.reason, got)
			}
			if worker.Containers[0].Lifecycle != nil {
				t.Errorf("%s\nwant no drain of a worker", tc.reason)
			}
		})
	}
}

// TestStart: pods have this many seconds to start, and a rollout has more than that.
func TestStart(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   int32
	}{
		"Default": {reason: "Five minutes.", spec: "{image: x}", want: 300},
		"Probe":   {reason: "A path alone changes nothing of it.", spec: "{image: x, probe: {path: /readyz}}", want: 300},
		"Slow":    {reason: "A slow start may take longer, and is not a rollout that is stuck.", spec: "{image: x, probe: {startup: {seconds: 900}}}", want: 900},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settle()
			d := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"])
			p := d.Spec.Template.Spec.Containers[0].StartupProbe
			if got := p.PeriodSeconds * p.FailureThreshold; got != tc.want {
				t.Errorf("%s\nwant %d seconds to start, got %d", tc.reason, tc.want, got)
			}
			if got := *d.Spec.ProgressDeadlineSeconds; got <= tc.want {
				t.Errorf("%s\na rollout must have longer than a start, has %d", tc.reason, got)
			}
		})
	}
}

// TestVersionLabel: pods have a label with the version that they run, and no selector uses it.
func TestVersionLabel(t *testing.T) {
	c := functionstest.New(t, functionstest.FullApp)
	c.Settle()
	for _, p := range functionstest.Pods(t, c.Observed) {
		if got := p.Labels["app.kubernetes.io/version"]; got != "1.2.3" {
			t.Errorf("pods of %s: want version 1.2.3, got %q", p.Component, got)
		}
	}
	d := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"])
	if d.Labels["app.kubernetes.io/version"] != "1.2.3" || d.Spec.Selector.MatchLabels["app.kubernetes.io/version"] != "" {
		t.Errorf("The Deployment is labelled and does not select by it: got %v, %v", d.Labels, d.Spec.Selector)
	}
	c = simulate(t, "{image: 'hello@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}")
	c.Settle()
	if v, ok := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"]).Labels["app.kubernetes.io/version"]; ok {
		t.Errorf("A digest is no version: got %q", v)
	}
}

// TestMigrationLimits: a migration has limits, and runs again if its image or one of its fields is
// edited.
func TestMigrationLimits(t *testing.T) {
	job := func(spec string) *batchv1.Job {
		c := simulate(t, spec)
		c.Settle()
		i := slices.IndexFunc(c.ComponentNames(), func(n string) bool { return strings.HasPrefix(n, "migration-") })
		return functionstest.As[batchv1.Job](t, c.Observed[c.ComponentNames()[i]])
	}
	plain := job("{image: x, migration: {args: [m]}}")
	if *plain.Spec.BackoffLimit != 4 || *plain.Spec.ActiveDeadlineSeconds != 3600 {
		t.Errorf("want the defaults, got %v", plain.Spec)
	}
	// The name of a Job must not change for claims without limits, otherwise they would migrate
	// again.
	if plain.Name != "hello-migration-"+build.Digest("x", "", "m") {
		t.Errorf("the name depends on image, command and args, got %s", plain.Name)
	}
	own := job("{image: x, migration: {args: [m], backoffLimit: 0, activeDeadlineSeconds: 60}}")
	if *own.Spec.BackoffLimit != 0 || *own.Spec.ActiveDeadlineSeconds != 60 {
		t.Errorf("want the claim's own, got %v", own.Spec)
	}
	names := map[string]bool{plain.Name: true, own.Name: true}
	for _, spec := range []string{
		"{image: z, migration: {args: [m]}}", "{image: x, migration: {args: [o]}}", "{image: x, migration: {command: [m]}}",
		"{image: x, migration: {args: [m], backoffLimit: 60}}", "{image: x, migration: {args: [m], activeDeadlineSeconds: 60}}",
	} {
		if n := job(spec).Name; names[n] {
			t.Errorf("%s: want a Job of its own, got %s", spec, n)
		} else {
			names[n] = true
		}
	}
	if again := job("{image: x, replicas: 2, env: [{name: A, value: b}], migration: {args: [m]}}"); again.Name != plain.Name {
		t.Errorf("what is not of the migration does not run it again: got %s", again.Name)
	}
}

// TestMigrationReady: the condition reports that a migration failed, what waits for it, and where
// to find the cause.
func TestMigrationReady(t *testing.T) {
	c := functionstest.New(t, functionstest.MigratedApp)
	c.Settle()
	if got := c.ConditionLine("MigrationReady"); got != "True Healthy" {
		t.Errorf("got %q", got)
	}
	c.Edit("registry.example.com/hello:2", "image")
	c.Reconcile()
	c.Reconcile()
	if got := c.ConditionLine("MigrationReady"); got != "False Waiting" {
		t.Errorf("got %q", got)
	}
	i := slices.IndexFunc(c.ComponentNames(), func(n string) bool { return strings.HasPrefix(n, "migration-") })
	name := c.ComponentNames()[i]
	c.SetStatus(name, `{failed: 5, conditions: [{type: Failed, status: "True", reason: DeadlineExceeded}]}`)
	c.Reconcile()
	words := "The Job failed (DeadlineExceeded) and holds the rollout: see kubectl logs job/hello-" + name
	if got := c.ConditionLine("MigrationReady"); got != "False Failed "+words {
		t.Errorf("want %q, got %q", words, got)
	}
	if got := c.Message(); !strings.Contains(got, "migration ("+words+")") || c.Phase() != "Failed" {
		t.Errorf("The claim says so too: got %s, %q", c.Phase(), got)
	}
	// When a user deletes the Job, it is created again.
	delete(c.Observed, name)
	c.Reconcile()
	c.Heal(name)
	c.Reconcile()
	c.Heal()
	c.Reconcile()
	if c.Phase() != "Running" || c.ConditionLine("MigrationReady") != "True Healthy" {
		t.Errorf("want it tried again: got %s, %q", c.Phase(), c.ConditionLine("MigrationReady"))
	}

	c = functionstest.New(t, functionstest.SmallApp)
	c.Reconcile()
	if got := c.ConditionLine("MigrationReady"); got != "True Disabled Not part of this claim" {
		t.Errorf("got %q", got)
	}
}
