package manager

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

func TestStop(t *testing.T) {
	const set = "statefulsets/" + setName
	hibernated := func(t *testing.T, a *api) {
		t.Helper()
		text := text(t, desired(func(d *instance.Desired) { d.Hibernated = true }))
		a.change("configmaps/"+setName, func(o map[string]any) { o["data"] = map[string]any{instance.DesiredKey: text} })
	}
	const own = "pods/" + setName + "-0"
	within := func(seconds int64) func(map[string]any) {
		return func(o map[string]any) {
			meta, _ := o["metadata"].(map[string]any)
			meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = "2026-01-01T00:00:00Z", seconds
		}
	}
	leaving := within(120)
	cases := map[string]struct {
		reason  string
		prepare func(*testing.T, *api, *servers)
		want    []string
		atLeast time.Duration
		// atMost is well below the time for which the hook would wait.
		atMost time.Duration
		// settle is how long the primary takes writes first.
		settle time.Duration
		// within is the time after which the hook is ended.
		within time.Duration
		// stranger means that the API server refuses the token of this server, and known that it
		// accepts those of the other servers.
		stranger, known bool
		// cut means that the network of the pod admits no new connection.
		cut bool
		// slow is how long the API server takes to answer the other servers.
		slow time.Duration
		// slowSelf means that it is as slow for this server.
		slowSelf bool
		// half means that only some of the other servers answer.
		half bool
		// patience is how long the other servers work on a request, if that is shorter than usual.
		patience time.Duration
		// hurried means that the server is to stop without archiving.
		hurried bool
	}{
		"HandOver": {
			reason: "A primary hands over to the synchronous standby after a checkpoint",
			want:   []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
		},
		"Settles": {
			reason: "It takes writes first, until proxies have written that its pod ends", settle: time.Second,
			want:    []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
			atLeast: time.Second,
		},
		"Brief": {
			reason: "There is no time for that in a short grace period", settle: candidateWithin,
			prepare: func(_ *testing.T, a *api, _ *servers) { a.change(own, within(int64(instance.SettleIn/time.Second)-1)) },
			want:    []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
			atMost:  candidateWithin / 2,
		},
		"Leaving": {
			reason: "A standby that is leaving too is none to hand over to",
			prepare: func(_ *testing.T, a *api, s *servers) {
				a.change("pods/"+setName+"-1", leaving)
				s.cluster.Members[2].Role = "sync_standby"
			},
			want: []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-2"},
		},
		"NoSynchronous": {
			reason: "One that lacks acknowledged writes is none either",
			prepare: func(_ *testing.T, _ *api, s *servers) {
				s.cluster.Members[1].State, s.cluster.Members[2].Role = "starting", "replica"
			},
			within: time.Second,
		},
		"Catching": {
			reason: "One that does not stream yet is waited for: it lacks what this server wrote since it took over",
			prepare: func(_ *testing.T, _ *api, s *servers) {
				s.cluster.Members = s.cluster.Members[:2]
				s.cluster.Members[1].State = "starting"
				time.AfterFunc(500*time.Millisecond, func() { s.set(func(s *servers) { s.cluster.Members[1].State = "streaming" }) })
			},
			want:    []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
			atLeast: 500 * time.Millisecond,
		},
		"Electing": {
			reason: "So is one that does not count for writes yet, or those of who takes over would wait",
			prepare: func(_ *testing.T, _ *api, s *servers) {
				s.cluster.Members[2].Role = "replica"
				time.AfterFunc(500*time.Millisecond, func() { s.set(func(s *servers) { s.cluster.Members[2].Role = "quorum_standby" }) })
			},
			want:    []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
			atLeast: 500 * time.Millisecond,
		},
		"Alone": {
			reason: "There is no standby to wait for", settle: candidateWithin, prepare: func(_ *testing.T, _ *api, s *servers) { s.cluster.Members = s.cluster.Members[:1] },
			atMost: candidateWithin / 2,
		},
		"AllLeaving": {
			reason: "Nor among those that are leaving or will",
			prepare: func(t *testing.T, a *api, s *servers) {
				t.Helper()
				s.cluster.Members[1].State, s.cluster.Members[2].State = "starting", "starting"
				a.change("pods/"+setName+"-1", leaving)
				text := text(t, desired(func(d *instance.Desired) { d.Size = 2 }))
				a.change("configmaps/"+setName, func(o map[string]any) { o["data"] = map[string]any{instance.DesiredKey: text} })
			},
			atMost: candidateWithin / 2,
		},
		"Hibernated": {reason: "All stop, so no standby takes over", prepare: func(t *testing.T, a *api, _ *servers) { hibernated(t, a) }},
		"Deleted":    {reason: "The set goes away", prepare: func(_ *testing.T, a *api, _ *servers) { a.change(set, leaving) }},
		"Gone":       {reason: "The set has gone", prepare: func(_ *testing.T, a *api, _ *servers) { a.remove(set) }},
		"Forbidden": {
			reason:  "The rights have gone before the pods",
			prepare: func(_ *testing.T, a *api, _ *servers) { a.refuse["GET configmaps/"+setName] = "no role" },
		},
		"NotDeleted": {
			reason: "A node that shuts down stops pods that have not been deleted, in an unknown time", settle: candidateWithin,
			atMost: candidateWithin / 2,
			prepare: func(_ *testing.T, a *api, _ *servers) {
				a.change(own, func(o map[string]any) {
					meta, _ := o["metadata"].(map[string]any)
					delete(meta, "deletionTimestamp")
					delete(meta, "deletionGracePeriodSeconds")
				})
			},
			want: []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
		},
		"Killed": {
			reason:  "One that is killed in a moment would be in the middle of it",
			prepare: func(_ *testing.T, a *api, _ *servers) { a.change(own, within(enoughSeconds-1)) },
			atMost:  candidateWithin / 2,
			hurried: true,
		},
		"Enough": {
			reason:  "With a little more time it hands over",
			prepare: func(_ *testing.T, a *api, _ *servers) { a.change(own, within(enoughSeconds)) },
			want:    []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
		},
		"Removed": {
			reason:  "A pod that is no more was deleted by force",
			prepare: func(_ *testing.T, a *api, _ *servers) { a.remove(own) },
			atMost:  candidateWithin / 2,
			hurried: true,
		},
		"Forced": {
			reason: "So was one whose token is refused, and whose pod others do not find", stranger: true, known: true,
			prepare: func(_ *testing.T, a *api, _ *servers) { a.remove(own) },
			atMost:  candidateWithin / 2,
			hurried: true,
		},
		"Cut": {
			reason: "The network admits no new connection of it by then: those go on that its manager has kept", stranger: true, known: true, cut: true,
			prepare: func(_ *testing.T, a *api, _ *servers) { a.remove(own) },
			atMost:  candidateWithin / 2,
			hurried: true,
		},
		"Cached": {
			reason: "Where they find it, deleted with its grace, the ServiceAccount is gone, and the API server takes their tokens for good yet", stranger: true, known: true,
			atMost: candidateWithin / 2,
		},
		"Loaded": {
			reason: "Where the API server is too slow to say, there may be no time", stranger: true, known: true, slow: 2 * time.Second,
			atMost:  candidateWithin / 2,
			hurried: true,
		},
		"LoadedSays": {
			reason: "So it is where another server says that it was too slow, before this one has waited as long", stranger: true, known: true, slow: 2 * time.Second,
			patience: knownWithin / 4,
			atMost:   candidateWithin / 2,
			hurried:  true,
		},
		"Drained": {
			reason: "A pod that has its grace period keeps it where the API server is too slow to say so: that it is says nothing of the pod", known: true, slow: 1200 * time.Millisecond, slowSelf: true,
			want: []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
		},
		"HalfClaim": {
			reason: "Where one that is not known either says so, the claim goes away, whichever other one is gone already", stranger: true, half: true,
			atMost: candidateWithin / 2,
		},
		"Claim": {
			reason: "Where none is known any more the claim goes away, and its pods have their time: the last WAL is archived", stranger: true,
			atMost: candidateWithin / 2,
		},
		"Account": {
			reason: "A standby waits for the primary's end then", stranger: true,
			prepare: func(_ *testing.T, _ *api, s *servers) {
				s.status.Role, s.receiving = "replica", true
				time.AfterFunc(500*time.Millisecond, func() { s.set(func(s *servers) { s.receiving = false }) })
				time.AfterFunc(2*time.Second, func() { s.set(func(s *servers) { s.cluster.Members = s.cluster.Members[1:] }) })
			},
			atLeast: 2 * time.Second,
		},
		"Unknown": {
			reason:  "Where it is unknown how much time there is, there is enough",
			prepare: func(_ *testing.T, a *api, _ *servers) { a.refuse["GET "+own] = "no role" },
			want:    []string{"checkpoint", "switchover db-postgresql-0 db-postgresql-1"},
		},
		"Standby": {
			reason:  "A standby stops at once while the cluster stays",
			prepare: func(_ *testing.T, _ *api, s *servers) { s.status.Role, s.receiving = "replica", true },
		},
		"LastStandby": {
			reason: "Where all stop a standby waits for the primary's end",
			prepare: func(t *testing.T, a *api, s *servers) {
				t.Helper()
				hibernated(t, a)
				s.status.Role, s.receiving = "replica", true
				time.AfterFunc(500*time.Millisecond, func() { s.set(func(s *servers) { s.receiving = false }) })
				time.AfterFunc(2*time.Second, func() { s.set(func(s *servers) { s.cluster.Members = s.cluster.Members[1:] }) })
			},
			atLeast: 2 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, config := installed(t)
			a.change(own, leaving)
			s, at := newServers(t)
			prepared := time.Now()
			if tc.prepare != nil {
				tc.prepare(t, a, s)
			}
			others := config
			switch {
			case !tc.known:
				others = stranger(t)
			case tc.slow > 0:
				others = loaded(t, a, tc.slow)
			}
			other, err := New(configOf(t, setName+"-1", at.URL), others, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			answers := other.handler()
			if tc.patience > 0 {
				answers = impatient(answers, tc.patience)
			}
			beside := httptest.NewServer(answers)
			defer beside.Close()
			switch {
			case tc.stranger:
				config = stranger(t)
			case tc.slowSelf:
				config = others
			}
			reached := config
			if tc.cut {
				reached = &rest.Config{Host: "http://127.0.0.1:1"}
			}
			client, err := kube.New(reached, "shop")
			if err != nil {
				t.Fatal(err)
			}
			pod := setName + "-0"
			if s.status.Role == "replica" {
				pod = setName + "-2"
				a.change("pods/"+pod, leaving)
			}
			c := configOf(t, pod, at.URL)
			c.Socket = t.TempDir()
			m, err := New(c, config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			silent := hung(t).Host
			access := m.access()
			m.sibling = func(base string) *patroni.Client {
				if tc.half && strings.Contains(base, "192.0.2.3") {
					return patroni.At(silent, access)
				}
				return patroni.At(beside.URL, access)
			}
			own := httptest.NewServer(m.handler())
			defer own.Close()
			if tc.cut {
				if err := m.sibling("").Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				_ = beside.Listener.Close()
				eventually(t, "The connection is kept.", func() bool { return m.sibling("").Connect(t.Context()) == nil })
			}
			start := time.Now()
			hook := &stopper{Config: c, log: slog.New(slog.DiscardHandler), kube: client, patroni: patroni.At(c.Patroni, c.access()), server: s, begin: func() error { return nil }, manager: patroni.At(own.URL, c.access()), started: start, settleFor: tc.settle}
			ctx := t.Context()
			if tc.within > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.within)
				defer cancel()
			}
			hook.prepare(ctx)
			if diff := cmp.Diff(tc.want, s.called(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: calls: -want, +got:\n%s", tc.reason, diff)
			}
			if _, err := os.Stat(filepath.Join(c.Socket, instance.HurriedFile)); (err == nil) != tc.hurried {
				t.Errorf("%s: want the server hurried: %t, got %v", tc.reason, tc.hurried, err)
			}
			// Changes during the wait are timed from the end of the preparation.
			if took := time.Since(prepared); took < tc.atLeast {
				t.Errorf("%s: it took %s, want %s at least", tc.reason, took, tc.atLeast)
			}
			if took := time.Since(start); tc.atMost > 0 && took > tc.atMost {
				t.Errorf("%s: it took %s, want %s at most", tc.reason, took, tc.atMost)
			}
		})
	}
}

// impatient wraps a handler and ends its requests early.
func impatient(h http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), within)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}
