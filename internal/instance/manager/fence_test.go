package manager

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// receives is the server beside a fencing manager. It has received WAL up to from, and up to later
// once 100 ms have passed.
type receives struct {
	from, later int64
	since       time.Time
	err         error

	// answers is the number of answers before it hangs, or 0 for no limit.
	answers int64
	asked   atomic.Int64
}

func (r *receives) Received(ctx context.Context) (int64, error) {
	if asked := r.asked.Add(1); r.answers > 0 && asked > r.answers {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	if time.Since(r.since) > 100*time.Millisecond {
		return r.later, r.err
	}
	return r.from, r.err
}

// TestFence: a server is promoted only if it has received all that any other standby of the old
// primary has.
func TestFence(t *testing.T) {
	const first, second = setName + "-0", setName + "-1"
	cases := map[string]struct {
		reason  string
		own     *receives
		prepare func(*servers)
		other   string
		behind  bool
		fenced  bool
		atMost  time.Duration
	}{
		"Same":      {reason: "Both have the same.", own: &receives{from: 100, later: 100}, fenced: true},
		"Ahead":     {reason: "It has more.", own: &receives{from: 200, later: 200}, fenced: true},
		"Behind":    {reason: "The other one has more: it is to lead.", own: &receives{from: 99, later: 99}, behind: true, fenced: true},
		"Slow":      {reason: "It has answered once that it has less: what ends the wait does not matter.", own: &receives{from: 99, later: 99, answers: 2}, behind: true, fenced: true},
		"SlowSoon":  {reason: "What it has said while the others were asked counts.", own: &receives{from: 99, later: 99, answers: 1}, behind: true, fenced: true},
		"CatchesUp": {reason: "What the other one has is on its way.", own: &receives{from: 99, later: 100}, fenced: true},
		"Unknown":   {reason: "Where it cannot say what it has, nothing holds it up.", own: &receives{err: errors.New("x")}, fenced: true},
		"Alone":     {reason: "There is no other.", prepare: func(s *servers) { s.cluster.Members = s.cluster.Members[:1] }},
		"Old":       {reason: "The old primary is no standby, and may be frozen.", prepare: func(s *servers) { s.cluster.Members[1].State = "running" }},
		"Refuses":   {reason: "One that cannot stop receiving holds it up as little.", prepare: func(s *servers) { s.fenceErr = errors.New("x") }, fenced: true},
		"Primary":   {reason: "Nor does one that turns out to lead.", prepare: func(s *servers) { s.fenceErr = postgres.ErrNotStandby }, fenced: true},
		"Silent":    {reason: "Nor one that does not answer.", other: "silent", atMost: fenceWithin + time.Second},
		"Stranger":  {reason: "Without the password no client stops a standby.", other: "stranger"},
		"NoPatroni": {reason: "Without Patroni it is not known who else there is.", other: "down"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, at := newServers(t)
			s.cluster.Members, s.received = s.cluster.Members[:2], 100
			if tc.prepare != nil {
				tc.prepare(s)
			}
			_, good := installed(t)
			other, err := New(configOf(t, second, at.URL), good, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			other.server = s
			beside := httptest.NewServer(other.handler())
			defer beside.Close()
			c := configOf(t, first, at.URL)
			url, access := beside.URL, c.access()
			switch tc.other {
			case "silent":
				url = hung(t).Host
			case "stranger":
				access = patroni.NewAccess(c.Volume+"/none", c.control())
			case "down":
				at.Close()
			}
			if tc.own == nil {
				tc.own = &receives{}
			}
			tc.own.since = time.Now()
			f := &fencer{
				pod: first, log: slog.New(slog.DiscardHandler), patroni: patroni.At(c.Patroni, c.access()), server: tc.own,
				sibling: func(string) *patroni.Client { return patroni.At(url, access) },
			}
			start := time.Now()
			err = f.fence(t.Context())
			if errors.Is(err, errBehind) != tc.behind || err != nil && !tc.behind {
				t.Errorf("%s\nfence(): got %v, want it to be behind: %t", tc.reason, err, tc.behind)
			}
			if got := slices.Contains(s.called(), "fence"); got != tc.fenced {
				t.Errorf("%s\nthe other server was told to receive nothing more: %t, want %t", tc.reason, got, tc.fenced)
			}
			if took := time.Since(start); tc.atMost > 0 && took > tc.atMost {
				t.Errorf("%s\nit took %s", tc.reason, took)
			}
		})
	}
}

// TestGuard: after the fence, Patroni may configure the standby to follow the old primary again,
// because it has not read yet which server leads. Or it had configured the new primary before the
// fence, and checks again only seconds later.
func TestGuard(t *testing.T) {
	const (
		second    = setName + "-1"
		old, next = "host=192.0.2.9 port=5432", "host=192.0.2.3 port=5432"
	)
	cases := map[string]struct {
		reason string

		// lock is the holder of the leader lock, configured the server that Patroni has configured,
		// and back the one that the standby follows after the fence.
		lock, configured, back string

		// down means that neither Patroni nor the API server answers.
		down bool
		want []string
	}{
		"OldPrimary":    {reason: "Patroni still takes the old primary for the leader.", lock: setName + "-2", back: old, want: []string{"fence", "fence"}},
		"Configured":    {reason: "Patroni has had its turn: the next one need not be waited for.", lock: setName + "-2", configured: next, want: []string{"fence", "unfence"}},
		"ConfiguredOld": {reason: "What it was told before is no way out.", lock: setName + "-2", configured: old, want: []string{"fence"}},
		"Follows":       {reason: "A standby that follows who is to lead is left alone.", lock: setName + "-2", back: next, want: []string{"fence"}},
		"Alone":         {reason: "Neither Patroni nor the API server need be queried for a standby that follows who is to lead.", back: next, down: true, want: []string{"fence"}},
		"LeadsAgain":    {reason: "The old primary has the lock again after all.", lock: setName + "-0", back: old, want: []string{"fence"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, at := newServers(t)
			world, config := installed(t)
			m, err := New(configOf(t, second, at.URL), config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if tc.down {
				at.Close()
				m.Kube = nil
			}
			world.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: instance.LeaderName(m.Scope), Annotations: map[string]string{leaderAnnotation: tc.lock}}})
			m.server = s
			s.set(func(s *servers) {
				// Patroni has not read the new leader yet.
				s.cluster.Members[0].Host, s.follows, s.configured = "192.0.2.9", old, tc.configured
			})
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, patroni.FencePath, strings.NewReader(`{"by":"`+setName+`-2"}`))
			r.SetBasicAuth("patroni", "rest")
			r.RemoteAddr = "192.0.2.3:40000"
			if m.handler().ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Fatalf("POST: got %d %s", w.Code, w.Body)
			}
			if tc.back != "" {
				s.set(func(s *servers) { s.follows = tc.back })
			}
			calls := func() (out []string) {
				for _, c := range s.called() {
					if strings.HasSuffix(c, "fence") {
						out = append(out, c)
					}
				}
				return out
			}
			eventually(t, tc.reason, func() bool { return slices.Equal(calls(), tc.want) })
			time.Sleep(6 * guardPoll) // it stays so
			if got := calls(); !slices.Equal(got, tc.want) {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// TestServeFence: a request that does not name the server to be promoted is refused.
func TestServeFence(t *testing.T) {
	_, at := newServers(t)
	_, config := installed(t)
	m, err := New(configOf(t, setName+"-1", at.URL), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]int{"": http.StatusBadRequest, `{"by":"other-0"}`: http.StatusBadRequest} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, patroni.FencePath, strings.NewReader(body))
		r.SetBasicAuth("patroni", "rest")
		w := httptest.NewRecorder()
		if m.handler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("POST %s: got %d, want %d", body, w.Code, want)
		}
	}
}
