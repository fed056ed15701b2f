package manager

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/control/controltest"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// stranger returns the config of a client that the API server no longer authenticates.
func stranger(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// hung returns the config of an API server that accepts requests and does not answer.
func hung(t *testing.T) *rest.Config {
	t.Helper()
	closing := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-closing:
		}
	}))
	t.Cleanup(func() { close(closing); server.Close() })
	return &rest.Config{Host: server.URL}
}

// loaded returns the config of the same API server with delayed answers.
func loaded(t *testing.T, a *api, answers time.Duration) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pace.Wait(r.Context(), answers) {
			a.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	const first, second = setName + "-0", setName + "-1"
	cases := map[string]struct {
		reason string
		known  bool
		stays  bool
		runs   bool
		role   string
		killed bool
		led    time.Duration
		pass   string
		holder string
		hangs  bool
		slow   time.Duration
		silent bool
		again  time.Duration
		want   string
	}{
		"Asks":         {reason: "A server whose token has ended asks another one.", pass: "rest", holder: first, want: ""},
		"Itself":       {reason: "One whose token is good does it itself, with no password.", known: true, holder: first, want: ""},
		"Stays":        {reason: "Where only the manager ends, the server may come back.", known: true, stays: true, holder: first, want: first},
		"Runs":         {reason: "A server that still runs keeps the lock.", runs: true, pass: "rest", holder: first, want: first},
		"Demoted":      {reason: "One that Patroni made a standby of cannot write.", runs: true, role: patroni.RoleReplica, pass: "rest", holder: first, want: ""},
		"Demoting":     {reason: "One that it is about to stop may still.", runs: true, role: "demoted", pass: "rest", holder: first, want: first},
		"Killed":       {reason: "What was killed left its file behind, and no program to start it again.", runs: true, killed: true, pass: "rest", holder: first, want: ""},
		"LongAgo":      {reason: "Who led long ago has nothing to let go of.", led: time.Minute, pass: "rest", holder: first, want: first},
		"Elsewhere":    {reason: "A lock that another one holds by now stays.", pass: "rest", holder: second, want: second},
		"OwnElsewhere": {reason: "So it does when the token is good.", known: true, pass: "rest", holder: second, want: second},
		"Hangs":        {reason: "Where the API server does not answer, the others are asked all the same.", hangs: true, killed: true, pass: "rest", holder: first, want: ""},
		"Restarts":     {reason: "Where it does not answer and Patroni lives, the server may come back.", hangs: true, pass: "rest", holder: first, want: first},
		"Slow":         {reason: "An answer that takes longer than the pod lives comes all the same.", slow: 900 * time.Millisecond, pass: "rest", holder: first, want: ""},
		"Silent":       {reason: "One that does not answer holds up no other.", silent: true, pass: "rest", holder: first, want: ""},
		"Again":        {reason: "A lock that the next pod of this name has renewed stays.", pass: "rest", again: time.Minute, holder: first, want: first},
		"Before":       {reason: "One that was renewed before the end does not.", pass: "rest", again: -time.Second, holder: first, want: ""},
		"NoPassword":   {reason: "No client without the password may ask.", pass: "guess", holder: first, want: first},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, good := installed(t)
			a.change("configmaps/"+setName+"-leader", func(o map[string]any) {
				annotations := map[string]any{leaderAnnotation: tc.holder, "ttl": "20"}
				if tc.again != 0 {
					// The format is that of Patroni.
					annotations["renewTime"] = time.Now().Add(tc.again).UTC().Format("2006-01-02T15:04:05.000000+00:00")
				}
				o["metadata"].(map[string]any)["annotations"] = annotations
			})
			if !tc.stays {
				a.remove("pods/" + first)
			}
			fake, at := newServers(t)
			if tc.role != "" {
				fake.set(func(s *servers) { s.status.Role = tc.role })
			}
			reached := good
			if tc.slow > 0 {
				reached = loaded(t, a, tc.slow)
			}
			other, err := New(configOf(t, second, at.URL), reached, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			beside := httptest.NewServer(other.handler())
			defer beside.Close()

			config := stranger(t)
			switch {
			case tc.known:
				config = good
			case tc.hangs:
				config = hung(t)
			}
			c := configOf(t, first, at.URL)
			if err := os.WriteFile(filepath.Join(c.Credentials, instance.KeyRESTAPI), []byte(tc.pass), 0o600); err != nil {
				t.Fatal(err)
			}
			if tc.runs {
				if err := os.MkdirAll(filepath.Join(c.Volume, instance.DataFolder), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(c.Volume, instance.DataFolder, "postmaster.pid"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m, err := New(c, config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			dead := hung(t).Host
			access := m.access()
			m.sibling = func(base string) *patroni.Client {
				if tc.silent && strings.Contains(base, "192.0.2.2") {
					return patroni.At(dead, access)
				}
				return patroni.At(beside.URL, access)
			}
			members := []patroni.Member{{Name: first, Host: "192.0.2.1"}, {Name: second, Host: "192.0.2.2"}}
			if tc.silent {
				members = append(members, patroni.Member{Name: setName + "-2", Host: "192.0.2.3"})
			}
			m.lead(&patroni.Cluster{Members: members})
			m.led.Load().at = time.Now().Add(-tc.led)
			if tc.killed {
				at.Close()
			}
			m.end()

			// A slow API server handles the request after this server has ended.
			if tc.slow > 0 {
				eventually(t, tc.reason, func() bool { return a.annotations("configmaps/" + setName + "-leader")[leaderAnnotation] == nil })
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			annotations, _ := a.objects["configmaps/"+setName+"-leader"]["metadata"].(map[string]any)["annotations"].(map[string]any)
			if got, _ := annotations[leaderAnnotation].(string); got != tc.want {
				t.Errorf("%s\nend(): the lock is held by %q, want %q", tc.reason, got, tc.want)
			}
			if annotations["ttl"] != "20" {
				t.Errorf("end(): the lock's other annotations are %v", annotations)
			}
		})
	}
}

func TestReleaseRefusesNonsense(t *testing.T) {
	_, good := installed(t)
	_, at := newServers(t)
	m, err := New(configOf(t, setName+"-1", at.URL), good, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]int{"": http.StatusBadRequest, `{"pod":"other-0"}`: http.StatusBadRequest, `{"pod":"` + setName + `-0"}`: http.StatusConflict} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, patroni.ReleasePath, strings.NewReader(body))
		r.SetBasicAuth("patroni", "rest")
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("POST %s: got %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
}

// TestLeaveCut: once a pod's object is gone, the network may admit no new connections of the pod,
// since no policy selects it any more. Existing connections continue.
func TestLeaveCut(t *testing.T) {
	const first, second = setName + "-0", setName + "-1"
	a, good := installed(t)
	a.change("configmaps/"+setName+"-leader", func(o map[string]any) {
		o["metadata"].(map[string]any)["annotations"] = map[string]any{leaderAnnotation: first}
	})
	a.remove("pods/" + first)
	_, at := newServers(t)
	other, err := New(configOf(t, second, at.URL), good, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	idle := make(chan struct{}, 1)
	beside := httptest.NewUnstartedServer(other.handler())
	beside.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateIdle {
			select {
			case idle <- struct{}{}:
			default:
			}
		}
	}
	c := configOf(t, first, at.URL)
	beside.TLS = controltest.Write(t, c.ControlDir, controltest.Authority(t), control.Name(setName, "shop")).Server()
	beside.StartTLS()
	defer beside.Close()
	m, err := New(c, stranger(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	sibling := m.sibling
	m.sibling = func(string) *patroni.Client { return sibling(beside.URL) }
	m.lead(&patroni.Cluster{Members: []patroni.Member{{Name: first}, {Name: second, Host: "192.0.2.2"}}})
	select {
	case <-idle:
	case <-time.After(5 * time.Second):
		t.Fatal("a primary keeps no connection to its standbys")
	}
	if err := beside.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	// The server reports the connection as idle before the client does.
	eventually(t, "The connection is kept.", func() bool { return m.sibling("192.0.2.2").Connect(t.Context()) == nil })
	m.end()
	if holder := a.annotations("configmaps/" + setName + "-leader")[leaderAnnotation]; holder != nil {
		t.Errorf("end(): the lock is held by %v", holder)
	}
}

// TestDemoted: the pod is gone from the API server, and the kubelet has not noticed.
func TestDemoted(t *testing.T) {
	const first, second = setName + "-0", setName + "-1"
	a, good := installed(t)
	a.change("configmaps/"+setName+"-leader", func(o map[string]any) {
		o["metadata"].(map[string]any)["annotations"] = map[string]any{leaderAnnotation: first}
	})
	fake, at := newServers(t)
	other, err := New(configOf(t, second, at.URL), good, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	beside := httptest.NewServer(other.handler())
	defer beside.Close()
	m, err := New(configOf(t, first, at.URL), stranger(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	access := m.access()
	m.sibling = func(string) *patroni.Client { return patroni.At(beside.URL, access) }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); m.followRole(ctx) }()
	eventually(t, "The server leads.", func() bool { s := m.seen.Load(); return s != nil && s.Primary() })
	m.lead(&patroni.Cluster{Members: []patroni.Member{{Name: first}, {Name: second, Host: "192.0.2.2"}}})
	fake.set(func(s *servers) { s.status.Role = patroni.RoleReplica })
	eventually(t, "The lock of a server that was demoted with its pod is released.", func() bool { return a.annotations("configmaps/" + setName + "-leader")[leaderAnnotation] == nil })
	cancel()
	<-ended
}
