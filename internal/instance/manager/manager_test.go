package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
)

const setName = "db-postgresql"

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "shop"} }

func desired(change ...func(*instance.Desired)) instance.Desired {
	d := instance.Desired{
		Claim: "db", Size: 3, Synchronous: true, Storage: "10Gi", Users: []string{"app"}, Databases: []instance.Database{{Name: "app", Owner: "app"}},
	}
	for _, c := range change {
		c(&d)
	}
	return d
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// installed returns an API server with a healthy cluster of three servers.
func installed(t *testing.T) (*api, *rest.Config) {
	t.Helper()
	a, config := newAPI(t)
	a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName), Data: map[string]string{instance.DesiredKey: text(t, desired())}})
	a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status")})
	a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-leader")})
	a.put("secrets", &corev1.Secret{ObjectMeta: named("db-credentials"), Data: map[string][]byte{
		instance.KeySuperuser: []byte("s"), instance.KeyReplication: []byte("r"), instance.KeyRewind: []byte("w"), instance.KeyRESTAPI: []byte("rest"), "user-app": []byte("a"),
	}})
	set := &k8sappsv1.StatefulSet{ObjectMeta: named(setName)}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.example.com/v1", Kind: "DatabaseCluster", Name: "db", UID: "dbc", Controller: new(true)}}
	set.Spec.UpdateStrategy.Type = k8sappsv1.OnDeleteStatefulSetStrategyType
	set.Status.UpdateRevision = "a"
	a.put("statefulsets", set)
	for i := range 3 {
		name := fmt.Sprintf("%s-%d", setName, i)
		a.put("pods", pod(name, "a"))
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("data-" + name)}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
		claim.Status.Capacity = claim.Spec.Resources.Requests
		a.put("persistentvolumeclaims", claim)
	}
	return a, config
}

func pod(name, revision string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named(name)}
	p.Labels = map[string]string{k8sappsv1.ControllerRevisionHashLabelKey: revision, instance.ScopeLabel: setName}
	p.Status.PodIP = "192.0.2.1"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func configOf(t *testing.T, pod, patroniURL string) Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, instance.KeyRESTAPI), []byte("rest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Config{
		Pod: pod, Namespace: "shop", Scope: setName, Address: "127.0.0.1:0", Patroni: patroniURL,
		Volume: dir, PatroniDir: dir, TLSDir: dir, ControlDir: dir, Credentials: dir,
	}
}

// manage runs a manager for a pod until the test ends.
func manage(t *testing.T, pod string, s *servers, at *httptest.Server, config *rest.Config) *Manager {
	t.Helper()
	m, err := New(configOf(t, pod, at.URL), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	m.server = s
	m.remote = func(string) *patroni.Client { return patroni.At(at.URL, m.access()) }
	run(t, m)
	return m
}

// run runs a manager until the test ends.
func run(t *testing.T, m *Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run(...): %v", err)
		}
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("cannot wait any longer until %s", what)
		}
	}
}

func cluster(t *testing.T, a *api) instance.Cluster {
	t.Helper()
	c := instance.Cluster{}
	if raw := a.report(instance.ClusterKey); raw != "" {
		if err := json.Unmarshal([]byte(raw), &c); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestPrimary(t *testing.T) {
	a, config := installed(t)
	a.change("pods/"+setName+"-0", func(o map[string]any) {
		meta, _ := o["metadata"].(map[string]any)
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": setName, "uid": "this", "controller": true}}
	})
	a.change("configmaps/"+setName+"-status", func(o map[string]any) { o["data"] = map[string]any{setName + "-4.json": "{}"} })
	s, at := newServers(t)
	m := manage(t, setName+"-0", s, at, config)

	eventually(t, "the primary reports", func() bool { return cluster(t, a).Primary != "" })
	want := instance.Cluster{
		Primary: setName + "-0", Set: "this", Owner: "dbc", Timeline: 3, Applied: instance.Digest(text(t, desired())), Credentials: "4",
		Standbys: []instance.Standby{{Name: setName + "-1", Streaming: true, Synchronous: true}, {Name: setName + "-2", Streaming: true, Synchronous: true}},
	}
	got := cluster(t, a)
	if _, err := time.Parse(stampLayout, got.Began); err != nil {
		t.Errorf("the primary reports that it began at %q: %v", got.Began, err)
	}
	got.Began = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report: -want, +got:\n%s", diff)
	}
	eventually(t, "the member reports", func() bool {
		return a.report(instance.MemberKey(setName+"-0")) == `{"protocol":1,"version":"17.5","capacity":"10Gi"}`
	})
	if got := a.report(setName + "-4.json"); got != "" {
		t.Errorf("a member that is gone: got %s, want none", got)
	}
	eventually(t, "the server may start", func() bool {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/started", nil))
		return w.Code == http.StatusOK
	})
	a.mu.Lock()
	lock := fmt.Sprint(a.objects["configmaps/"+setName+"-leader"]["metadata"])
	a.mu.Unlock()
	if !strings.Contains(lock, "kind:StatefulSet") {
		t.Errorf("leader lock: got %s, want an owner", lock)
	}
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, line := range []string{"storeplane_instance_primary 1", "storeplane_instance_standbys_streaming 2", "storeplane_instance_drift 0"} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("metrics: want %q in\n%s", line, w.Body)
		}
	}

	// The desired state changes, and one password cannot be set.
	s.set(func(s *servers) {
		s.problems = []instance.Problem{{Subject: instance.SubjectUser, Name: "other", Message: "no"}}
	})
	next := text(t, desired(func(d *instance.Desired) { d.Users = append(d.Users, "other") }))
	a.change("secrets/db-credentials", func(o map[string]any) {
		data, _ := o["data"].(map[string]any)
		data["user-other"] = "bw=="
	})
	a.change("configmaps/"+setName, func(o map[string]any) { o["data"] = map[string]any{instance.DesiredKey: next} })
	eventually(t, "the change is applied", func() bool { return cluster(t, a).Applied == instance.Digest(next) })
	if diff := cmp.Diff(s.problems, cluster(t, a).Problems); diff != "" {
		t.Errorf("problems: -want, +got:\n%s", diff)
	}
	eventually(t, "the problem is an event", func() bool { return slices.Contains(a.events(), "Warning RoleReconcileFailed: no") })
	if !slices.Contains(a.events(), "Normal Promoted: "+setName+"-0 is the primary") {
		t.Errorf("events: got %q, want Promoted", a.events())
	}
}

// TestFirstReport: of a new cluster's primary the version is reported together with the cluster, since
// each report runs the function.
func TestFirstReport(t *testing.T) {
	a, config := installed(t)
	key := instance.MemberKey(setName + "-0")
	a.change("configmaps/"+setName+"-status", func(o map[string]any) {
		o["data"] = map[string]any{key: `{"protocol":1,"capacity":"10Gi"}`}
	})
	s, at := newServers(t)
	manage(t, setName+"-0", s, at, config)

	eventually(t, "the version is reported", func() bool { return strings.Contains(a.report(key), "17.5") })
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff([][]string{{instance.ClusterKey, key}}, a.reports); diff != "" {
		t.Errorf("reports: -want, +got:\n%s", diff)
	}
}

// TestLeavesVersion: when a server leaves its version to the primary's first report.
func TestLeavesVersion(t *testing.T) {
	now := time.Now()
	primary := patroni.Status{Role: "primary", State: patroni.StateRunning}
	last := instance.Member{Protocol: 1, Capacity: "10Gi"}
	next := instance.Member{Protocol: 1, Capacity: "10Gi", Version: "17.5"}
	cases := map[string]struct {
		reason     string
		status     *patroni.Status
		last, next instance.Member
		left       time.Time
		want       bool
	}{
		"First":    {reason: "The first primary does.", status: &primary, last: last, next: next, want: true},
		"Late":     {reason: "But not for long.", status: &primary, last: last, next: next, left: now.Add(-11 * time.Second)},
		"Standby":  {reason: "A standby does not.", status: &patroni.Status{Role: patroni.RoleReplica, State: patroni.StateRunning}, last: last, next: next},
		"Silent":   {reason: "Nor does one whose Patroni does not answer.", last: last, next: next},
		"Unknown":  {reason: "There is nothing to leave.", status: &primary, last: last, next: last},
		"Upgraded": {reason: "Another version is reported at once.", status: &primary, last: next, next: instance.Member{Protocol: 1, Capacity: "10Gi", Version: "17.6"}},
		"More":     {reason: "So is all else.", status: &primary, last: last, next: instance.Member{Protocol: 1, Capacity: "10Gi", Version: "17.5", Restart: true}},
		"Nothing":  {reason: "And the first report of a server.", status: &primary, next: next},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, config := installed(t)
			m, err := New(configOf(t, setName+"-0", "http://127.0.0.1:1"), config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			b := &member{Manager: m, left: tc.left}
			if got := b.leavesVersion(tc.status, tc.last, tc.next, now); got != tc.want {
				t.Errorf("%s\nleavesVersion(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	a, config := installed(t)
	s, at := newServers(t)
	manage(t, setName+"-0", s, at, config)
	eventually(t, "the primary reports", func() bool { return cluster(t, a).Primary != "" })

	a.change("statefulsets/"+setName, func(o map[string]any) {
		status, _ := o["status"].(map[string]any)
		status["updateRevision"] = "b"
	})
	for _, i := range []int{2, 1, 0} {
		name := fmt.Sprintf("%s-%d", setName, i)
		eventually(t, name+" is replaced", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.objects["pods/"+name] == nil
		})
		eventually(t, "it is waited for", func() bool { return i == 0 || cluster(t, a).Rolling == "Waiting for "+name+" to start" })
		a.put("pods", pod(name, "b"))
	}
	if diff := cmp.Diff([]string{setName + "-2", setName + "-1", setName + "-0"}, a.deleted); diff != "" {
		t.Errorf("deleted: -want, +got:\n%s", diff)
	}
	eventually(t, "it ends", func() bool { return cluster(t, a).Rolling == "" })
	if !slices.Contains(a.events(), "Normal RollingUpdate: Replacing "+setName+"-2") {
		t.Errorf("events: got %q, want RollingUpdate", a.events())
	}
}

func TestRestart(t *testing.T) {
	_, config := installed(t)
	s, at := newServers(t)
	s.status.PendingRestart = true
	s.cluster.Members[1].PendingRestart = true
	manage(t, setName+"-0", s, at, config)

	// All servers answer at one address, so one restart clears the flag of all, and the flag of the
	// primary is set again afterwards.
	eventually(t, "the standby restarts", func() bool { return slices.Contains(s.called(), "restart") })
	if slices.Contains(s.called(), "checkpoint") {
		t.Errorf("calls: got %q, want the standby first", s.called())
	}
	s.set(func(s *servers) { s.status.PendingRestart = true })
	eventually(t, "the primary restarts after a checkpoint", func() bool {
		i := slices.Index(s.called(), "checkpoint")
		return i >= 0 && i+1 < len(s.called()) && s.called()[i+1] == "restart"
	})
}

func TestHandOverBeforeShrinking(t *testing.T) {
	a, config := installed(t)
	s, at := newServers(t)
	s.cluster.Members[0].Role, s.cluster.Members[2].Role = "replica", "leader"
	s.followers["db-postgresql-0"] = report.Follower{Streaming: true}
	small := text(t, desired(func(d *instance.Desired) { d.Size = 2 }))
	a.change("configmaps/"+setName, func(o map[string]any) { o["data"] = map[string]any{instance.DesiredKey: small} })
	manage(t, setName+"-2", s, at, config)
	eventually(t, "it hands over to the synchronous standby, after a checkpoint", func() bool {
		i := slices.Index(s.called(), "switchover db-postgresql-2 db-postgresql-1")
		return i > 0 && s.called()[i-1] == "checkpoint"
	})
}

func TestGrow(t *testing.T) {
	a, config := installed(t)
	s, at := newServers(t)
	s.status.Role = "replica"
	a.refuse["PATCH persistentvolumeclaims/data-"+setName+"-1"] = "only dynamically provisioned pvc can be resized"
	large := text(t, desired(func(d *instance.Desired) { d.Storage = "20Gi" }))
	a.change("configmaps/"+setName, func(o map[string]any) { o["data"] = map[string]any{instance.DesiredKey: large} })
	m := manage(t, setName+"-1", s, at, config)
	growing := manage(t, setName+"-2", s, at, config)

	report := func(pod string) string { return a.report(instance.MemberKey(pod)) }
	eventually(t, "a refusal is told", func() bool {
		return strings.Contains(report(setName+"-1"), `"volume":"cannot grow to 20Gi: only dynamically provisioned pvc can be resized"`)
	})
	eventually(t, "a refusal does not hold up the server", m.sized.Load)
	eventually(t, "more is asked for", func() bool {
		return slices.Contains(a.events(), "Normal VolumeResize: Expanding the volume of "+setName+"-2 to 20Gi")
	})
	// The version may be reported later than the volume.
	if got, want := report(setName+"-2"), `"capacity":"10Gi"}`; got != "" && !strings.HasSuffix(got, want) {
		t.Errorf("while it grows: got %s, want %s", got, want)
	}
	if growing.sized.Load() {
		t.Error("a server starts before its volume has grown")
	}
	a.change("persistentvolumeclaims/data-"+setName+"-2", func(o map[string]any) {
		o["status"] = map[string]any{"capacity": map[string]any{"storage": "20Gi"}}
	})
	eventually(t, "the server may start", growing.sized.Load)
	eventually(t, "the new size is reported", func() bool { return report(setName+"-2") == `{"protocol":1,"version":"17.5","capacity":"20Gi"}` })
	if cluster(t, a).Primary != "" {
		t.Error("a standby speaks for the cluster")
	}
}

// TestGrowRepository: the primary's manager expands the volume of the repository, which the
// repository's own pod may not do, and reports what prevents the expansion.
func TestGrowRepository(t *testing.T) {
	const name = "data-db-repository-0"
	a, config := installed(t)
	s, at := newServers(t)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named(name)}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
	claim.Status.Capacity = claim.Spec.Resources.Requests
	a.put("persistentvolumeclaims", claim)
	want := func(size string) {
		d := text(t, desired(func(d *instance.Desired) { d.Repository = &instance.Volume{Claim: name, Storage: size} }))
		a.change("configmaps/"+setName, func(o map[string]any) { o["data"] = map[string]any{instance.DesiredKey: d} })
	}
	want("50Gi")
	manage(t, setName+"-0", s, at, config)
	eventually(t, "more is asked for", func() bool {
		return slices.Contains(a.events(), "Normal VolumeResize: Expanding the volume of the backups to 50Gi")
	})
	if got := cluster(t, a).Repository; got != "" {
		t.Errorf("while it grows nothing is wrong, got %q", got)
	}
	a.change("persistentvolumeclaims/"+name, func(o map[string]any) { o["status"] = map[string]any{"capacity": map[string]any{"storage": "50Gi"}} })
	a.mu.Lock()
	a.refuse["PATCH persistentvolumeclaims/"+name] = "only dynamically provisioned pvc can be resized"
	a.mu.Unlock()
	want("60Gi")
	eventually(t, "a refusal is reported", func() bool {
		return cluster(t, a).Repository == "cannot grow to 60Gi: only dynamically provisioned pvc can be resized"
	})
	want("40Gi")
	eventually(t, "a volume that is larger is well", func() bool { return cluster(t, a).Repository == "" })
}

func TestFiles(t *testing.T) {
	_, config := installed(t)
	s, at := newServers(t)
	s.status.Role = "replica"
	c := configOf(t, setName+"-1", at.URL)
	c.PatroniDir, c.TLSDir, c.Credentials = t.TempDir(), t.TempDir(), t.TempDir()
	write := func(dir, version, file, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "..data"))
		if err := os.Symlink(version, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(c.Credentials, "1", instance.KeyRESTAPI, "rest")
	write(c.PatroniDir, "1", "x", "")
	write(c.TLSDir, "1", "x", "")
	m, err := New(c, config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	m.server = s
	go m.followFiles(t.Context())

	eventually(t, "all is read once", func() bool { return slices.Equal(s.called(), []string{"reload", "reload certificate"}) })
	write(c.TLSDir, "2", "x", "")
	eventually(t, "a certificate is read", func() bool { return len(s.called()) == 3 && s.called()[2] == "reload certificate" })
	// Patroni accepts the old password until it has read the new one.
	write(c.Credentials, "2", instance.KeyRESTAPI, "new")
	eventually(t, "the configuration is read with the old password", func() bool { return len(s.called()) == 4 && s.called()[3] == "reload" })
}
