package manager

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// stranger is a config of somebody whom the API server does not know any more.
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

func TestFarewell(t *testing.T) {
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
		want   string
	}{
		"Asks":         {reason: "A server whose token has ended asks another one.", pass: "rest", holder: first, want: ""},
		"Itself":       {reason: "One whose token is good does it itself, with no password.", known: true, holder: first, want: ""},
		"Stays":        {reason: "Where only the manager ends, the server may come back.", known: true, stays: true, holder: first, want: first},
		"Runs":         {reason: "A server that still runs keeps the lock.", runs: true, pass: "rest", holder: first, want: first},
		"Demoted":      {reason: "One that Patroni made a standby of can not write.", runs: true, role: patroni.RoleReplica, pass: "rest", holder: first, want: ""},
		"Demoting":     {reason: "One that it is about to stop may still.", runs: true, role: "demoted", pass: "rest", holder: first, want: first},
		"Killed":       {reason: "What was killed left its file behind, and nobody to start it again.", runs: true, killed: true, pass: "rest", holder: first, want: ""},
		"LongAgo":      {reason: "Who led long ago has nothing to let go of.", led: time.Minute, pass: "rest", holder: first, want: first},
		"Elsewhere":    {reason: "A lock that another one holds by now stays.", pass: "rest", holder: second, want: second},
		"OwnElsewhere": {reason: "So it does when the token is good.", known: true, pass: "rest", holder: second, want: second},
		"NoPassword":   {reason: "Nobody without the password may ask.", pass: "guess", holder: first, want: first},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, good := installed(t)
			a.change("configmaps/"+setName+"-leader", func(o map[string]any) {
				o["metadata"].(map[string]any)["annotations"] = map[string]any{leaderAnnotation: tc.holder, "ttl": "20"}
			})
			if !tc.stays {
				a.remove("pods/" + first)
			}
			fake, at := newServers(t)
			if tc.role != "" {
				fake.set(func(s *servers) { s.status.Role = tc.role })
			}
			other, err := New(configOf(t, second, at.URL), good, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			beside := httptest.NewServer(other.handler())
			defer beside.Close()

			config := stranger(t)
			if tc.known {
				config = good
			}
			c := configOf(t, first, at.URL)
			if err := os.WriteFile(filepath.Join(c.Credentials, keyREST), []byte(tc.pass), 0o600); err != nil {
				t.Fatal(err)
			}
			if tc.runs {
				if err := os.MkdirAll(filepath.Join(c.Volume, "pgdata"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(c.Volume, "pgdata", "postmaster.pid"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m, err := New(c, config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			m.sibling = func(string) *patroni.Client { return patroni.At(beside.URL, m.password()) }
			m.lead(&patroni.Cluster{Members: []patroni.Member{{Name: first, Host: "192.0.2.1"}, {Name: second, Host: "192.0.2.2"}}})
			m.led.Load().at = time.Now().Add(-tc.led)
			if tc.killed {
				at.Close()
			}
			m.farewell()

			a.mu.Lock()
			defer a.mu.Unlock()
			annotations, _ := a.objects["configmaps/"+setName+"-leader"]["metadata"].(map[string]any)["annotations"].(map[string]any)
			if got, _ := annotations[leaderAnnotation].(string); got != tc.want {
				t.Errorf("%s\nfarewell(): the lock is held by %q, want %q", tc.reason, got, tc.want)
			}
			if annotations["ttl"] != "20" {
				t.Errorf("farewell(): the lock's other annotations are %v", annotations)
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
