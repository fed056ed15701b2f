package manager

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
)

// TestReclaimReconsidered: while a server waits for the archive before it leads, another volume is
// named, the annotation is removed, or backups are turned off.
func TestReclaimReconsidered(t *testing.T) {
	for name, tc := range map[string]struct{ other, withdrawn bool }{"Named": {other: true, withdrawn: true}, "Unnamed": {withdrawn: true}, "NoBackup": {}} {
		t.Run(name, func(t *testing.T) {
			one, other := pgdatatest.New(t).Begin(), pgdatatest.New(t).Begin()
			r := reclaim(t, 2, 0, 1)
			first, second := r.server(0, one), r.server(1, other)
			r.held(0, first, "hold different databases")
			named := func(n string, b *instance.Backup) {
				r.desire(func(d *instance.Desired) { d.Size, d.LeadWith, d.Backup = 2, "data-"+setName+"-"+n+"@dbc", b })
			}
			named("1", &instance.Backup{})
			r.starts(second, "it was named")
			file := filepath.Join(other.Dir, instance.TimelineFile)
			state := func() (s instance.TimelineState, ok bool) {
				raw, err := os.ReadFile(file)
				return s, err == nil && json.Unmarshal(raw, &s) == nil
			}
			if _, ok := state(); !ok {
				t.Fatal("it does not wait for the archive")
			}
			candidate := func() any { return r.api.annotations("configmaps/" + setName + "-failover")[candidateAnnotation] }
			if candidate() != setName+"-1" {
				t.Fatalf("Patroni is to have %v lead", candidate())
			}
			unname := func() {
				if tc.other {
					named("0", &instance.Backup{})
					return
				}
				r.desire(func(d *instance.Desired) { d.Size, d.Backup = 2, &instance.Backup{} })
			}
			if tc.withdrawn {
				// The pod may have changed since it was read, so its deletion is refused.
				r.api.mu.Lock()
				r.api.refuse["DELETE pods/"+setName+"-1"] = "it has changed"
				r.api.mu.Unlock()
				unname()
				eventually(t, "it waits no more to lead", func() bool {
					s, ok := state()
					return ok && s.Withdrawn
				})
				named("1", &instance.Backup{})
				eventually(t, "it waits again, and is the candidate again", func() bool {
					s, ok := state()
					return ok && !s.Withdrawn && candidate() == setName+"-1"
				})
				unname()
				eventually(t, "it waits no more to lead", func() bool {
					s, ok := state()
					return ok && s.Withdrawn
				})
				r.api.mu.Lock()
				delete(r.api.refuse, "DELETE pods/"+setName+"-1")
				r.api.mu.Unlock()
			} else {
				named("1", nil)
			}
			eventually(t, "it waits no more for the archive", func() bool {
				s, ok := state()
				return tc.withdrawn && s.Withdrawn || !tc.withdrawn && !ok
			})
			eventually(t, "its pod is replaced if it is not to lead", func() bool { return r.api.has("pods/"+setName+"-1") != tc.withdrawn })
			if tc.withdrawn && candidate() == setName+"-1" {
				t.Errorf("Patroni is still to have %v lead", candidate())
			}
		})
	}
}

// TestReclaimWithdrawn: the annotation is removed, or another server leads, after Patroni was given
// the named server as its candidate and before it has promoted it.
func TestReclaimWithdrawn(t *testing.T) {
	const began = "20260102T030405Z"
	for name, tc := range map[string]struct {
		reason string

		// member means that the server had followed the last primary, and begun that it has begun a
		// timeline on which to lead.
		member, begun bool

		// role is the one that Patroni last reported, promoted means that the server has been
		// promoted since, and leader that another server leads instead.
		role     string
		promoted bool
		leader   bool

		replaced, candidate, stands bool
	}{
		"Stale":   {reason: "It was not there when the cluster ran last: it waits for a primary again.", role: patroni.RoleReplica, replaced: true},
		"Member":  {reason: "It goes on as the member that it was.", member: true, role: patroni.RoleReplica},
		"Begun":   {reason: "By its timeline it would be taken for the newest.", member: true, begun: true, role: patroni.RoleReplica, replaced: true},
		"Leads":   {reason: "It is too late.", role: "primary", candidate: true},
		"Late":    {reason: "It leads by now, which was not seen yet.", member: true, begun: true, role: patroni.RoleReplica, promoted: true, candidate: true, stands: true},
		"Instead": {reason: "Patroni would hand over to it.", member: true, role: patroni.RoleReplica, leader: true},
	} {
		t.Run(name, func(t *testing.T) {
			stale := pgdatatest.New(t).Begin()
			r := reclaim(t, 2, 0, 1)
			last := instance.Cluster{Primary: setName + "-0", Began: began}
			if tc.member {
				last.Standbys = []instance.Standby{{Name: setName + "-1"}}
			}
			r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: text(t, last)}})
			r.desire(func(d *instance.Desired) { d.Size, d.LeadWith = 2, "data-"+setName+"-1@dbc-"+began })
			second := r.server(1, stale)
			r.starts(second, "it was named")
			candidate := func() bool {
				return r.api.annotations("configmaps/" + setName + "-failover")[candidateAnnotation] == setName+"-1"
			}
			if !candidate() {
				t.Fatal("Patroni is not to have it lead")
			}
			if tc.begun {
				if err := os.WriteFile(filepath.Join(stale.Dir, instance.BegunFile), []byte("2"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tc.promoted {
				r.answersAt(second)
			}
			second.seen.Store(&patroni.Status{State: "starting", Role: tc.role})
			b := &member{Manager: second, data: &instance.Data{State: instance.DataWhole, Timeline: 1}}
			if tc.leader {
				r.leads(0)
			} else {
				r.desire(func(d *instance.Desired) { d.Size = 2 })
			}
			if err := b.reconsider(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := !r.api.has("pods/" + setName + "-1"); got != tc.replaced {
				t.Errorf("%s\nits pod is replaced: %t", tc.reason, got)
			}
			if got := candidate(); got != tc.candidate {
				t.Errorf("%s\nPatroni is still to have it lead: %t", tc.reason, got)
			}
			if _, err := os.Stat(filepath.Join(stale.Dir, instance.CandidateFile)); (err == nil) != tc.stands {
				t.Errorf("%s\nit still stands: %t", tc.reason, err == nil)
			}
		})
	}
}

// TestReclaimReplaced: while a named server waits for Patroni to promote it, one that was named in
// between has stood in its place and resigned. Patroni is to have the named one lead all the same.
func TestReclaimReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		// failover is Patroni's request as it is found. leads means that the server has been promoted,
		// which removes the request.
		failover map[string]any
		leads    bool
		want     map[string]any
	}{
		"Resigned": {want: map[string]any{candidateAnnotation: setName + "-1"}},
		"Standing": {failover: map[string]any{candidateAnnotation: setName + "-0"}, want: map[string]any{candidateAnnotation: setName + "-1"}},
		"Leads":    {leads: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := reclaim(t, 2, 0, 1)
			r.desire(func(d *instance.Desired) { d.Size, d.LeadWith = 2, "data-"+setName+"-1@dbc" })
			second := r.server(1, pgdatatest.New(t).Begin())
			r.starts(second, "it was named")
			r.api.change("configmaps/"+setName+"-failover", func(o map[string]any) {
				meta, _ := o["metadata"].(map[string]any)
				delete(meta, "annotations")
				if tc.failover != nil {
					meta["annotations"] = tc.failover
				}
			})
			if tc.leads {
				r.answersAt(second)
			}
			second.seen.Store(&patroni.Status{State: "running", Role: patroni.RoleReplica})
			b := &member{Manager: second, data: &instance.Data{State: instance.DataWhole, Timeline: 1}}
			if err := b.reconsider(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.api.annotations("configmaps/"+setName+"-failover"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Patroni's failover: -want, +got:\n%s", diff)
			}
		})
	}
}
