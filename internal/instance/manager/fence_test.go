package manager

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// own server of a fencer: how much it has received by its time.
type receives struct {
	from, later int64
	since       time.Time
	err         error
}

func (r *receives) Received(context.Context) (int64, error) {
	if time.Since(r.since) > 100*time.Millisecond {
		return r.later, r.err
	}
	return r.from, r.err
}

// TestFence: a server is promoted only if it has all that another one has received that
// follows the old primary.
func TestFence(t *testing.T) {
	const first, second = setName + "-0", setName + "-1"
	cases := map[string]struct {
		reason  string
		own     receives
		prepare func(*servers)
		other   string
		behind  bool
		fenced  bool
		atMost  time.Duration
	}{
		"Same":      {reason: "Both have the same.", own: receives{from: 100, later: 100}, fenced: true},
		"Ahead":     {reason: "It has more.", own: receives{from: 200, later: 200}, fenced: true},
		"Behind":    {reason: "The other one has more: it is to lead.", own: receives{from: 99, later: 99}, behind: true, fenced: true},
		"CatchesUp": {reason: "What the other one has is on its way.", own: receives{from: 99, later: 100}, fenced: true},
		"Unknown":   {reason: "Where it cannot say what it has, nothing holds it up.", own: receives{err: errors.New("x")}, fenced: true},
		"Alone":     {reason: "There is no other.", prepare: func(s *servers) { s.cluster.Members = s.cluster.Members[:1] }},
		"Old":       {reason: "The old primary is no standby, and may be frozen.", prepare: func(s *servers) { s.cluster.Members[1].State = "running" }},
		"Refuses":   {reason: "One that cannot stop receiving holds it up as little.", prepare: func(s *servers) { s.fenceErr = errors.New("x") }, fenced: true},
		"Primary":   {reason: "Nor does one that turns out to lead.", prepare: func(s *servers) { s.fenceErr = postgres.ErrNotStandby }, fenced: true},
		"Silent":    {reason: "Nor one that does not answer.", other: "silent", atMost: fenceWithin + time.Second},
		"Stranger":  {reason: "Without the password nobody stops a standby.", other: "stranger"},
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
			url, password := beside.URL, c.password()
			switch tc.other {
			case "silent":
				url = hung(t).Host
			case "stranger":
				password = patroni.PasswordFile(c.Volume + "/none")
			case "down":
				at.Close()
			}
			tc.own.since = time.Now()
			f := &fencer{
				pod: first, log: slog.New(slog.DiscardHandler), patroni: patroni.At(c.Patroni, c.password()), server: &tc.own,
				sibling: func(string) *patroni.Client { return patroni.At(url, password) },
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

// TestGuard: Patroni may see to it that the standby follows the old primary, before it has
// heard of the new one.
func TestGuard(t *testing.T) {
	const second = setName + "-1"
	const old, next = "host=192.0.2.9 port=5432", "host=192.0.2.3 port=5432"
	s, at := newServers(t)
	_, good := installed(t)
	m, err := New(configOf(t, second, at.URL), good, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	m.server = s
	s.set(func(s *servers) { s.follows = old })
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, patroni.FencePath, strings.NewReader(`{"by":"`+setName+`-2"}`))
	r.SetBasicAuth("patroni", "rest")
	m.handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("POST: got %d %s", w.Code, w.Body)
	}
	fences := func() (n int) {
		for _, c := range s.called() {
			if c == "fence" {
				n++
			}
		}
		return n
	}
	s.set(func(s *servers) { s.follows = old })
	eventually(t, "it receives nothing from the old primary again", func() bool { return fences() == 2 })
	s.set(func(s *servers) { s.follows = next })
	time.Sleep(4 * guardPoll) // it is left alone
	if n := fences(); n != 2 {
		t.Errorf("a standby that follows another one was fenced: %d times in all", n)
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
