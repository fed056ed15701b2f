package manager

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

// claimed is the creation time of the StatefulSet. Its own volumes are created after it, and those
// of an earlier StatefulSet were created before.
var claimed = metav1.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// reclaimed is a cluster that is created while there are volumes of its name.
type reclaimed struct {
	t      *testing.T
	api    *api
	config *rest.Config

	// fakes stands for the server that leads.
	fakes *servers
	at    *httptest.Server
}

func reclaim(t *testing.T, size int32, kept ...int) *reclaimed {
	t.Helper()
	a, config := installed(t)
	a.change("statefulsets/"+setName, func(o map[string]any) {
		meta, _ := o["metadata"].(map[string]any)
		meta["creationTimestamp"] = claimed.UTC().Format(time.RFC3339)
	})
	for n := range 3 {
		name := instance.Pod(setName, int32(n))
		created := claimed.Add(time.Second)
		if slices.Contains(kept, n) {
			created = claimed.Add(-time.Hour)
		} else if n >= int(size) {
			a.remove("persistentvolumeclaims/data-" + name)
		}
		if n >= int(size) {
			a.remove("pods/" + name)
		}
		a.change("persistentvolumeclaims/data-"+name, func(o map[string]any) {
			meta, _ := o["metadata"].(map[string]any)
			meta["creationTimestamp"] = created.UTC().Format(time.RFC3339)
		})
	}
	a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-config")})
	a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-failover")})
	r := &reclaimed{t: t, api: a, config: config}
	r.fakes, r.at = newServers(t)
	r.desire(func(d *instance.Desired) { d.Size = size })
	return r
}

func (r *reclaimed) desire(change func(*instance.Desired)) {
	r.t.Helper()
	r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName), Data: map[string]string{instance.DesiredKey: text(r.t, desired(change))}})
}

// server runs the manager of a server with the given volume, or with a new one.
func (r *reclaimed) server(n int32, v *pgdatatest.Volume) *Manager {
	r.t.Helper()
	m := r.manager(n, v)
	run(r.t, m)
	return m
}

// manager returns the manager of a server with the given volume, or with a new one.
func (r *reclaimed) manager(n int32, v *pgdatatest.Volume) *Manager {
	r.t.Helper()
	none := httptest.NewServer(http.NotFoundHandler())
	none.Close()
	c := configOf(r.t, instance.Pod(setName, n), none.URL)
	if v != nil {
		if err := os.WriteFile(filepath.Join(v.Dir, instance.KeyRESTAPI), []byte("rest\n"), 0o600); err != nil {
			r.t.Fatal(err)
		}
		c.Volume = v.Dir
	}
	m, err := New(c, r.config, slog.New(slog.DiscardHandler))
	if err != nil {
		r.t.Fatal(err)
	}
	m.server = r.fakes
	m.remote = func(string) *patroni.Client { return patroni.At(r.at.URL, m.access()) }
	return m
}

// answersAt serves the address of a server's own Patroni, which reports that it leads.
func (r *reclaimed) answersAt(m *Manager) {
	r.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", strings.TrimPrefix(m.Patroni, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	own := &httptest.Server{Listener: listener, Config: &http.Server{Handler: r.at.Config.Handler, ReadHeaderTimeout: time.Minute}}
	own.Start()
	r.t.Cleanup(own.Close)
}

// leads gives a server the leader lock.
func (r *reclaimed) leads(n int32) {
	lock := &corev1.ConfigMap{ObjectMeta: named(setName + "-leader")}
	lock.Annotations = map[string]string{leaderAnnotation: instance.Pod(setName, n)}
	r.api.put("configmaps", lock)
}

func (r *reclaimed) member(n int32) instance.Member {
	m := instance.Member{}
	_ = json.Unmarshal([]byte(r.api.report(instance.MemberKey(instance.Pod(setName, n)))), &m)
	return m
}

// held waits until a server reports why it is not started.
func (r *reclaimed) held(n int32, m *Manager, words string) {
	r.t.Helper()
	eventually(r.t, "server is held: "+words, func() bool {
		h := r.member(n).Held
		return mayStart(r.t, m) || h != nil && strings.Contains(h.Message, words)
	})
	if mayStart(r.t, m) {
		r.t.Fatalf("server %d may start, want it to wait: %s", n, words)
	}
}

func mayStart(t *testing.T, m *Manager) bool {
	t.Helper()
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/started", nil))
	return w.Code == http.StatusOK
}

func (r *reclaimed) starts(m *Manager, reason string) {
	r.t.Helper()
	eventually(r.t, "the server may start: "+reason, func() bool { return mayStart(r.t, m) })
}

// twoVolumes returns two volumes of one database: newest has writes that stale lacks.
func twoVolumes(t *testing.T) (stale, newest *pgdatatest.Volume) {
	t.Helper()
	newest = pgdatatest.New(t).Begin().Start()
	stale = pgdatatest.New(t).Copy(newest).Start().Stop("fast")
	newest.Ask("CREATE TABLE only_here AS SELECT generate_series(1, 100)")
	newest.Stop("immediate")
	return stale, newest
}

// TestReclaimLarger: a cluster of one server that is created again with three does not begin with
// the empty volumes of the new servers.
func TestReclaimLarger(t *testing.T) {
	_, data := twoVolumes(t)
	r := reclaim(t, 3, 0)
	second, third := r.server(1, nil), r.server(2, nil)
	r.held(1, second, "Waiting for the contents of volume claim data-"+setName+"-0")
	r.held(2, third, "Waiting for the contents of")
	first := r.server(0, data)
	r.starts(first, "its volume has the data")
	if got := r.api.annotations("configmaps/" + setName + "-failover")["member"]; got != setName+"-0" {
		t.Errorf("got candidate %v, want the server that leads: what Patroni remembers of an earlier StatefulSet may want others' votes", got)
	}
	r.held(1, second, "Waiting for "+setName+"-0 to lead")
	eventually(t, "it is said which volume leads", func() bool {
		return slices.ContainsFunc(r.api.events(), func(e string) bool {
			return strings.HasPrefix(e, "Normal VolumesCompared: "+setName+"-0 leads with volume claim data-"+setName+"-0: timeline 1, position 0/")
		})
	})
	r.leads(0)
	r.starts(second, "it copies the primary")
	r.starts(third, "so does this one")
}

// TestReclaimStale: a volume with less data than another one never leads, in whichever order the
// servers start.
func TestReclaimStale(t *testing.T) {
	stale, newest := twoVolumes(t)
	r := reclaim(t, 2, 0, 1)
	old := r.server(0, stale)
	r.held(0, old, "Waiting for the contents of volume claim data-"+setName+"-1")
	r.starts(r.server(1, newest), "it has the newest data")
	r.held(0, old, "Waiting for "+setName+"-1 to lead")
	if d := r.member(1).Data; d == nil || d.State != instance.DataWhole || d.Claim == "" || d.Position <= r.member(0).Data.Position {
		t.Errorf("got %+v, want more than %+v", d, r.member(0).Data)
	}
	r.leads(1)
	r.starts(old, "it follows")
	// Once the cluster has run, nothing is compared.
	r.api.change("configmaps/"+setName+"-status", func(o map[string]any) {
		data, _ := o["data"].(map[string]any)
		data[instance.ClusterKey] = `{"primary":"` + setName + `-1"}`
	})
	eventually(t, "what was compared is reported no more", func() bool { return r.member(1).Data == nil })
}

// TestReclaimSmaller: the volume of a server beyond the desired size is compared too.
func TestReclaimSmaller(t *testing.T) {
	stale, newest := twoVolumes(t)
	r := reclaim(t, 1, 0, 2)
	first := r.server(0, stale)
	r.held(0, first, "Waiting for the contents of volume claim data-"+setName+"-2")
	eventually(t, "it is reported how many servers that takes", func() bool { return r.member(0).Servers == 3 })
	// The function adds the servers.
	r.api.put("pods", pod(setName+"-2", "a"))
	third := r.server(2, newest)
	r.starts(third, "it has the newest data")
	r.held(0, first, "Waiting for "+setName+"-2 to lead")
}

// TestReclaimForeign: two different databases are not compared. The volume that the user names
// leads, and the other data is set aside.
func TestReclaimForeign(t *testing.T) {
	one, other := pgdatatest.New(t).Begin(), pgdatatest.New(t).Begin()
	r := reclaim(t, 2, 0, 1)
	first, second := r.server(0, one), r.server(1, other)
	r.held(0, first, "hold different databases")
	r.held(1, second, "annotate the DatabaseCluster with storeplane.example.com/lead-with=<volume claim>@dbc")
	if h := r.member(0).Held; !h.Undecided {
		t.Errorf("got %+v, want it to be undecided", h)
	}
	eventually(t, "it is said once", func() bool {
		return len(r.api.events()) == 1 && strings.HasPrefix(r.api.events()[0], "Warning LeaderUndecided: ")
	})
	r.desire(func(d *instance.Desired) { d.Size, d.LeadWith = 2, "data-"+setName+"-1@earlier" })
	r.held(0, first, "hold different databases")
	r.desire(func(d *instance.Desired) { d.Size, d.LeadWith = 2, "data-"+setName+"-1@dbc" })
	r.starts(second, "it was named")
	r.held(0, first, "Waiting for "+setName+"-1 to lead")

	config := &corev1.ConfigMap{ObjectMeta: named(setName + "-config")}
	config.Annotations = map[string]string{initializeAnnotation: r.member(1).Data.System}
	r.api.put("configmaps", config)
	// The primary's report is written before the other server reads which one leads.
	view := &view{standbys: []instance.Standby{{Name: setName + "-0"}}}
	reported := (&primary{Manager: second, archiving: &archiving{}, since: claimed.Time}).report(view, roll.Step{}, instance.Cluster{}, false)
	r.api.change("configmaps/"+setName+"-status", func(o map[string]any) {
		data, _ := o["data"].(map[string]any)
		data[instance.ClusterKey] = text(t, reported)
	})
	r.held(0, first, setName+"-0 was not there when the cluster ran last")
	r.leads(1)
	r.starts(first, "it copies the primary")
	aside, _ := filepath.Glob(filepath.Join(one.Dir, "pgdata-other-*", "PG_VERSION"))
	if _, err := os.Stat(one.Data); err == nil || len(aside) != 1 {
		t.Errorf("the other database is at %v, want it aside", aside)
	}
}

// TestReclaimNamed: in a cluster that has run, a server leads that Patroni would not promote,
// because a user has named its volume. The annotation counts for this once, and what a member wrote
// in the meantime is set aside.
func TestReclaimNamed(t *testing.T) {
	stale, newest := twoVolumes(t)
	r := reclaim(t, 2, 0, 1)
	const began = "20260102T030405Z"
	r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: text(t, instance.Cluster{Primary: setName + "-0", Began: began, Timeline: 3})}})
	r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-failover")})
	// Patroni has a later timeline than was reported.
	published := &corev1.ConfigMap{ObjectMeta: named(setName + "-config")}
	published.Annotations = map[string]string{patroni.HistoryAnnotation: `[[2,50331976,"x"],[3,67109192,"x","2026-01-02T03:04:05+00:00","db-0"]]`}
	r.api.put("configmaps", published)

	second := r.server(1, stale)
	r.held(1, second, "annotate the DatabaseCluster with storeplane.example.com/lead-with=<volume claim>@dbc-"+began)
	for _, old := range []string{"dbc", "dbc-20250102T030405Z"} {
		r.desire(func(d *instance.Desired) { d.Size, d.LeadWith = 2, "data-"+setName+"-1@"+old })
		r.held(1, second, "was not there when the cluster ran last")
	}
	if got := r.api.annotations("configmaps/" + setName + "-failover")["member"]; got != nil {
		t.Errorf("got candidate %v, want none before it is decided", got)
	}
	decided := "data-" + setName + "-1@dbc-" + began
	r.desire(func(d *instance.Desired) { d.Size, d.LeadWith, d.Backup = 2, decided, &instance.Backup{} })
	r.starts(second, "it was named")
	timeline := filepath.Join(stale.Dir, instance.TimelineFile)
	if got, err := os.ReadFile(timeline); err != nil || string(got) != `{"after":4}` {
		t.Errorf("later timelines than the named volume's: the archive may know of some, and one began after timeline 3; got %s, %v", got, err)
	}
	if err := os.WriteFile(timeline, []byte(`{"message":"cannot ask the archive","after":4}`), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is said why the server does not start", func() bool { return r.member(1).Message == "cannot ask the archive" })
	if got := r.api.annotations("configmaps/" + setName + "-failover")["member"]; got != setName+"-1" {
		t.Errorf("got candidate %v, want the named server: Patroni would let another one lead, or none", got)
	}
	first := r.server(0, newest)
	r.held(0, first, "Waiting for volume claim data-"+setName+"-1, which the annotation names, to lead")

	data := r.member(0).Data
	if data != nil {
		t.Errorf("got %+v, want nothing compared in a cluster that has run", data)
	}
	config := &corev1.ConfigMap{ObjectMeta: named(setName + "-config")}
	config.Annotations = map[string]string{initializeAnnotation: pgdata.Read(t.Context(), newest.Data).System}
	r.api.put("configmaps", config)
	// The named server is promoted at the end of its data.
	r.fakes.set(func(s *servers) {
		s.status.Timeline, s.history = 2, [][]any{{1, uint64(pgdata.Read(t.Context(), stale.Data).Position), "no recovery target specified"}}
	})
	r.leads(1)
	r.starts(first, "it copies the primary")
	aside, _ := filepath.Glob(filepath.Join(newest.Dir, "pgdata-branch-*", "PG_VERSION"))
	if _, err := os.Stat(filepath.Join(newest.Dir, instance.TimelineFile)); err == nil {
		t.Error("a server that follows begins no timeline")
	}
	if _, err := os.Stat(newest.Data); err == nil || len(aside) != 1 {
		t.Errorf("what the member went on with is at %v, want it aside", aside)
	}
	// The report of the server that leads shows that the annotation is used up.
	p := &primary{Manager: second, archiving: &archiving{}, since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for state, want := range map[string]bool{began: true, "20260102T040506Z": false} {
		if got := p.named(&instance.Desired{LeadWith: decided}, state); got != want {
			t.Errorf("named after a primary that began at %s: got %t", state, got)
		}
	}
	p.decide(&instance.Desired{LeadWith: decided})
	if got := p.report(&view{}, roll.Step{}, instance.Cluster{}, false).Began; got == began || got == "" {
		t.Errorf("the primary began at %q, want another time than the annotation names", got)
	}
}

// TestReclaimSameNumber: a server went on with a timeline of the primary's number, and has no room
// to set that data aside. pg_rewind compares only the number, and would leave the data as it is.
func TestReclaimSameNumber(t *testing.T) {
	v := pgdatatest.New(t).Begin()
	if err := os.WriteFile(filepath.Join(v.Data, "standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v.Start().Promote().Stop("fast")
	ancestor := pgdata.Read(t.Context(), v.Data).History[0]
	large, err := os.Create(filepath.Join(v.Data, "large"))
	if err != nil {
		t.Fatal(err)
	}
	// The file is sparse, so it needs no room itself.
	if err := errors.Join(large.Truncate(1<<42), large.Close()); err != nil {
		t.Fatal(err)
	}
	r := reclaim(t, 2)
	r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: text(t, instance.Cluster{Primary: setName + "-0", Timeline: 2})}})
	config := &corev1.ConfigMap{ObjectMeta: named(setName + "-config")}
	config.Annotations = map[string]string{initializeAnnotation: pgdata.Read(t.Context(), v.Data).System}
	r.api.put("configmaps", config)
	r.fakes.set(func(s *servers) {
		s.status.Timeline, s.history = 2, [][]any{{1, uint64(ancestor.End) - 64, "no recovery target specified"}}
	})
	r.leads(0)
	r.held(1, r.server(1, v), "went on without the primary on a timeline of the same number, 2, and has no room to set that aside")
}

// TestReclaimBegun: a server that was to lead and did not is on a timeline of which no other server
// has data. It waits for a primary.
func TestReclaimBegun(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, begun string
		held          bool
	}{
		"Begun":    {reason: "Patroni would let it lead by its timeline.", begun: "1", held: true},
		"Replaced": {reason: "Its data was replaced since.", begun: "4"},
		"None":     {reason: "It was there when the cluster ran last."},
	} {
		t.Run(name, func(t *testing.T) {
			stale := pgdatatest.New(t).Begin()
			if tc.begun != "" {
				if err := os.WriteFile(filepath.Join(stale.Dir, instance.BegunFile), []byte(tc.begun), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := reclaim(t, 2)
			r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: text(t, instance.Cluster{Primary: setName + "-0", Standbys: []instance.Standby{{Name: setName + "-1"}}})}})
			second := r.server(1, stale)
			if tc.held {
				r.held(1, second, "Waiting for a primary: "+setName+"-1 was to lead by an annotation that has been removed")
				return
			}
			r.starts(second, tc.reason)
		})
	}
}

// TestReclaimChosen: a server that was chosen as the newest volume, and has begun a timeline on
// which to lead, is chosen again once the content of the other volumes is known.
func TestReclaimChosen(t *testing.T) {
	newest := pgdatatest.New(t).Begin()
	for file, text := range map[string]string{instance.BegunFile: "1", instance.CandidateFile: ""} {
		if err := os.WriteFile(filepath.Join(newest.Dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := reclaim(t, 2, 0, 1)
	first := r.server(0, newest)
	r.held(0, first, "Waiting for the contents of volume claim data-"+setName+"-1")
	if _, err := os.Stat(filepath.Join(newest.Dir, instance.CandidateFile)); err != nil {
		t.Fatalf("That it was chosen is forgotten: %v", err)
	}
	r.server(1, nil)
	r.starts(first, "the other volume is empty")
}

// TestReclaimAsked: a user has requested a failover from Patroni, as the runbook describes, and the
// candidate restarts. The request stays.
func TestReclaimAsked(t *testing.T) {
	r := reclaim(t, 2)
	r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: text(t, instance.Cluster{Primary: setName + "-0", Standbys: []instance.Standby{{Name: setName + "-1"}}})}})
	asked := &corev1.ConfigMap{ObjectMeta: named(setName + "-failover")}
	asked.Annotations = map[string]string{candidateAnnotation: setName + "-1"}
	r.api.put("configmaps", asked)
	r.starts(r.server(1, nil), "it is a member")
	if got := r.api.annotations("configmaps/" + setName + "-failover")[candidateAnnotation]; got != setName+"-1" {
		t.Errorf("got candidate %v, want what was asked for", got)
	}
}

// TestReclaimed: which servers wait for other volumes, and which do not.
func TestReclaimed(t *testing.T) {
	report := func(primary string, standbys ...string) string {
		c := instance.Cluster{Primary: primary}
		for _, s := range standbys {
			c.Standbys = append(c.Standbys, instance.Standby{Name: s})
		}
		return text(t, c)
	}
	cases := map[string]struct {
		reason  string
		kept    []int
		cluster string
		ready   func(*reclaimed)
		held    string
	}{
		"Fresh": {reason: "Where there was no volume nothing is waited for."},
		"Kept":  {reason: "Another volume was there.", kept: []int{0}, held: "Waiting for the contents of volume claim data-" + setName + "-0"},
		"Leaving": {reason: "One that is being deleted is not waited for.", kept: []int{0}, ready: func(r *reclaimed) {
			r.api.change("persistentvolumeclaims/data-"+setName+"-0", func(o map[string]any) {
				meta, _ := o["metadata"].(map[string]any)
				meta["deletionTimestamp"] = claimed.UTC().Format(time.RFC3339)
			})
		}},
		"EmptyOnes": {reason: "Nothing is on the volumes that were there.", kept: []int{0, 1}, ready: func(r *reclaimed) { r.server(0, nil) }},
		"Primary":   {reason: "The last primary waits for no other server.", kept: []int{0, 1, 2}, cluster: report(setName + "-1")},
		"Left": {reason: "A server of a deleted cluster that had not ended yet has told of itself.", kept: []int{0, 1, 2}, cluster: text(t, instance.Cluster{Primary: setName + "-1", Set: "earlier", Owner: "earlier"}), ready: func(r *reclaimed) {
			r.api.change("statefulsets/"+setName, func(o map[string]any) {
				meta, _ := o["metadata"].(map[string]any)
				meta["uid"] = "this"
			})
		}, held: "Waiting for the contents of volume claim"},
		"Standby":  {reason: "Nor does a standby that it had.", kept: []int{0, 1, 2}, cluster: report(setName+"-0", setName+"-1")},
		"Outsider": {reason: "One that was not there may have less than it.", kept: []int{0, 1}, cluster: report(setName + "-0"), held: setName + "-1 was not there when the cluster ran last"},
		"Added":    {reason: "Nor was one that never followed it.", kept: []int{0, 1}, cluster: text(t, instance.Cluster{Primary: setName + "-0", Standbys: []instance.Standby{{Name: setName + "-1", New: true}}}), held: setName + "-1 was not there when the cluster ran last"},
		"Outlived": {reason: "A lock whose holder does not lead is none.", kept: []int{0, 1}, cluster: report(setName + "-0"), ready: func(r *reclaimed) {
			r.fakes.set(func(s *servers) { s.status.Role = patroni.RoleReplica })
			r.leads(0)
		}, held: "was not there"},
		"Joins": {reason: "It follows one that leads.", kept: []int{0, 1}, cluster: report(setName + "-0"), ready: func(r *reclaimed) { r.leads(0) }},
		"Orphan": {reason: "A StatefulSet without an owner keeps its servers.", cluster: report(setName+"-0", setName+"-1"), ready: func(r *reclaimed) {
			r.api.change("statefulsets/"+setName, func(o map[string]any) {
				meta, _ := o["metadata"].(map[string]any)
				delete(meta, "ownerReferences")
			})
		}},
		"Restored": {reason: "A cluster that is restored goes on with no volume: those with data are refused.", kept: []int{0}, ready: func(r *reclaimed) {
			r.desire(func(d *instance.Desired) { d.Size, d.Restored, d.Restoring = 2, true, true })
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reclaim(t, 2, tc.kept...)
			if tc.cluster != "" {
				r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: tc.cluster}})
			}
			if tc.ready != nil {
				tc.ready(r)
			}
			m := r.server(1, nil)
			if tc.held != "" {
				r.held(1, m, tc.held)
				return
			}
			start := time.Now()
			r.starts(m, tc.reason)
			if took := time.Since(start); name != "EmptyOnes" && took > 3*time.Second {
				t.Errorf("%s\nit may start after %s", tc.reason, took)
			}
		})
	}
}

// TestReclaimAway: while the API server is unavailable no new server starts, and one that runs is
// not held.
func TestReclaimAway(t *testing.T) {
	r := reclaim(t, 2, 0, 1)
	for _, path := range []string{"statefulsets/" + setName, "configmaps/" + setName, "configmaps/" + setName + "-status"} {
		r.api.mu.Lock()
		r.api.refuse["GET "+path] = "it is away"
		r.api.mu.Unlock()
		b := &member{Manager: r.server(1, nil)}
		b.takeOwnership(t.Context(), &instance.Member{})
		if b.owned.Load() {
			t.Errorf("without %s a server may start", path)
		}
		b.seen.Store(&patroni.Status{})
		b.takeOwnership(t.Context(), &instance.Member{})
		if !b.owned.Load() {
			t.Errorf("without %s a server that runs is held", path)
		}
		r.api.mu.Lock()
		delete(r.api.refuse, "GET "+path)
		r.api.mu.Unlock()
	}
}
