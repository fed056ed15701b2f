package patroni

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance/control"
)

// clusterJSON is the answer of Patroni 4 to GET /cluster.
const clusterJSON = `{"members": [
	{"name": "db-0", "role": "leader", "state": "running", "api_url": "http://10.0.0.1:8008/patroni", "host": "10.0.0.1", "port": 5432, "timeline": 3, "pending_restart": true, "pending_restart_reason": {"max_connections": {"old_value": "100", "new_value": "200"}}},
	{"name": "db-1", "role": "sync_standby", "state": "streaming", "api_url": "https://10.0.0.2:8008/patroni", "host": "10.0.0.2", "port": 5432, "timeline": 3, "lag": 0},
	{"name": "db-2", "role": "replica", "state": "starting", "host": "10.0.0.3", "port": 5432, "lag": "unknown"}
], "scope": "db"}`

func TestCluster(t *testing.T) {
	got := &Cluster{}
	if err := json.Unmarshal([]byte(clusterJSON), got); err != nil {
		t.Fatal(err)
	}
	want := &Cluster{Members: []Member{
		{Name: "db-0", Role: "leader", State: "running", Host: "10.0.0.1", APIURL: "http://10.0.0.1:8008/patroni", PendingRestart: true},
		{Name: "db-1", Role: "sync_standby", State: "streaming", Host: "10.0.0.2", APIURL: "https://10.0.0.2:8008/patroni"},
		{Name: "db-2", Role: "replica", State: "starting", Host: "10.0.0.3", Lag: -1},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("/cluster: -want, +got:\n%s", diff)
	}
	// A manager uses TLS if the Patroni of its pod does.
	for i, want := range []string{"http://10.0.0.1:8009", "https://10.0.0.2:8009", "https://10.0.0.3:8009"} {
		if at := got.Members[i].Manager("8009"); at != want {
			t.Errorf("Manager(...) of %s: got %s, want %s", got.Members[i].Name, at, want)
		}
	}
	if got.Leader() != "db-0" {
		t.Errorf("Leader(): got %q, want db-0", got.Leader())
	}
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		reason         string
		json           string
		leads, primary bool
		version        string
	}{
		"Primary":  {reason: "A primary that runs", json: `{"state": "running", "role": "primary", "server_version": 170005}`, leads: true, primary: true, version: "17.5"},
		"Master":   {reason: "What it was called before", json: `{"state": "running", "role": "master", "server_version": 150018}`, leads: true, primary: true, version: "15.18"},
		"Restarts": {reason: "It still leads, and takes no writes", json: `{"state": "restarting", "role": "primary"}`, leads: true},
		"Replica":  {reason: "A standby", json: `{"state": "running", "role": "replica", "server_version": 170005}`, version: "17.5"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &Status{}
			if err := json.Unmarshal([]byte(tc.json), s); err != nil {
				t.Fatal(err)
			}
			if s.Leads() != tc.leads || s.Primary() != tc.primary || s.Version() != tc.version {
				t.Errorf("%s: got %t, %t, %q, want %t, %t, %q", tc.reason, s.Leads(), s.Primary(), s.Version(), tc.leads, tc.primary, tc.version)
			}
		})
	}
}

func TestCandidate(t *testing.T) {
	members := []Member{
		{Name: "db-0", Role: "leader", State: "running"},
		{Name: "db-2", Role: "replica", State: "streaming", Lag: 10},
		{Name: "db-1", Role: "sync_standby", State: "streaming", Lag: 20},
		{Name: "db-3", Role: "replica", State: "streaming", Lag: -1},
		{Name: "db-4", Role: "replica", State: "starting"},
		{Name: "db-5", Role: "replica", State: "streaming", Tags: map[string]any{"nofailover": true}},
	}
	all := func(string) bool { return true }
	cases := map[string]struct {
		reason      string
		members     []Member
		synchronous bool
		fit         func(string) bool
		want        string
	}{
		"Least":       {reason: "The one that lags least", members: members, fit: all, want: "db-2"},
		"Synchronous": {reason: "The one that has every acknowledged write", members: members, synchronous: true, fit: all, want: "db-1"},
		"Quorum":      {reason: "One of a quorum serves too", members: []Member{{Name: "db-1", Role: "quorum_standby", State: "streaming"}}, synchronous: true, fit: all, want: "db-1"},
		"Unfit":       {reason: "One that may be taken", members: members, fit: func(pod string) bool { return pod == "db-1" }, want: "db-1"},
		"NoneFit":     {reason: "No member is fit", members: members, fit: func(string) bool { return false }},
		"Unsure":      {reason: "None whose lag, state or tags speak against it", members: members[3:], fit: all},
		"First":       {reason: "The first of equals", members: []Member{{Name: "db-2", State: "streaming"}, {Name: "db-1", State: "streaming"}}, fit: all, want: "db-1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (&Cluster{Members: tc.members}).Candidate(tc.synchronous, tc.fit); got != tc.want {
				t.Errorf("%s: Candidate(...): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestClient(t *testing.T) {
	var password, path, body string
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, p, _ := r.BasicAuth()
		if user != "patroni" || p != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		b, _ := io.ReadAll(r.Body)
		path, body = r.URL.Path, string(b)
		w.WriteHeader(code)
		_, _ = w.Write([]byte("switchover is not possible\n"))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "password")
	write := func(p string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(p), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	c := At(server.URL, NewAccess(file, control.TLS{}))

	password = "one"
	if err := c.Switchover(t.Context(), "db-0", "db-1"); err != nil || path != "/switchover" || body != `{"candidate":"db-1","leader":"db-0"}` {
		t.Errorf("Switchover(...): got %s %s, %v", path, body, err)
	}
	if err := c.Restart(t.Context()); err != nil || path != "/restart" || body != `{"restart_pending":true}` {
		t.Errorf("Restart(): got %s %s, %v", path, body, err)
	}
	// The file has the new password before Patroni has reloaded it.
	write("two")
	if err := c.Reload(t.Context()); err != nil || path != "/reload" {
		t.Errorf("Reload() with the password before: %v", err)
	}
	password = "two"
	if err := c.Reload(t.Context()); err != nil {
		t.Errorf("Reload() with the new password: %v", err)
	}
	password = "three"
	if err := c.Reload(t.Context()); !errors.Is(err, ErrRefused) {
		t.Errorf("Reload() with no password that fits: got %v, want %v", err, ErrRefused)
	}
	password, code = "two", http.StatusPreconditionFailed
	err := c.Switchover(t.Context(), "db-0", "db-1")
	if !errors.Is(err, ErrRefused) {
		t.Fatalf("Switchover(...) that is refused: got %v, want %v", err, ErrRefused)
	}
	if want := "Patroni refuses /switchover: switchover is not possible"; err.Error() != want {
		t.Errorf("Switchover(...): got %q, want %q", err, want)
	}
}
