package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
)

// servers stands for several PostgreSQL servers under Patroni, which all answer at one address.
type servers struct {
	mu sync.Mutex

	status  patroni.Status
	cluster patroni.Cluster

	// history is the history of the primary's timeline as Patroni returns it.
	history [][]any

	followers map[string]report.Follower
	problems  []instance.Problem
	receiving bool

	// follows is the server that a standby follows, received how far it has received from it, and
	// configured is the server that Patroni has configured for the time after the fence.
	follows    string
	configured string
	received   int64
	fenceErr   error
	archiver   postgres.Archiver
	down       bool

	// calls holds the calls that changed something, in order.
	calls []string

	// password is the one that Patroni requires.
	password string
}

func newServers(t *testing.T) (*servers, *httptest.Server) {
	t.Helper()
	s := &servers{
		password: "rest",
		status:   patroni.Status{State: "running", Role: "primary", ServerVersion: 170005, Timeline: 3},
		cluster: patroni.Cluster{Members: []patroni.Member{
			{Name: "db-postgresql-0", Role: "leader", State: "running"},
			{Name: "db-postgresql-1", Role: "sync_standby", State: "streaming", Host: "192.0.2.2"},
			{Name: "db-postgresql-2", Role: "quorum_standby", State: "streaming", Host: "192.0.2.3"},
		}},
		history:   [][]any{{1, 1 << 40, "no recovery target specified"}, {2, 1 << 40, "no recovery target specified"}},
		followers: map[string]report.Follower{"db-postgresql-1": {Streaming: true, Synchronous: true}, "db-postgresql-2": {Streaming: true, Synchronous: true}},
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server
}

func (s *servers) set(change func(*servers)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *servers) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *servers) callf(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// ServeHTTP answers as Patroni's API does.
func (s *servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		answer := any(s.status)
		switch r.URL.Path {
		case "/cluster":
			answer = s.cluster
		case "/history":
			answer = s.history
		}
		encode(w, answer)
		return
	}
	if user, password, _ := r.BasicAuth(); user != "patroni" || password != s.password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body := struct {
		Leader    string `json:"leader"`
		Candidate string `json:"candidate"`
	}{}
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch r.URL.Path {
	case "/switchover":
		s.callf("switchover %s %s", body.Leader, body.Candidate)
		s.status.Role = "replica"
	case "/restart":
		s.callf("restart")
		s.status.PendingRestart = false
		for i := range s.cluster.Members {
			s.cluster.Members[i].PendingRestart = false
		}
	default:
		s.callf("%s", r.URL.Path[1:])
	}
}

// Checkpoint implements database.
func (s *servers) Checkpoint(context.Context) error {
	s.set(func(s *servers) { s.callf("checkpoint") })
	return nil
}

func (s *servers) Reload(context.Context) error {
	s.set(func(s *servers) { s.callf("reload certificate") })
	return nil
}

func (s *servers) Programs(context.Context) (postgres.Programs, error) {
	return postgres.Programs{}, errors.New("there are none")
}

func (s *servers) Followers(context.Context) (map[string]report.Follower, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errors.New("the server is down")
	}
	return s.followers, nil
}

// Monitoring implements database.
func (s *servers) Monitoring(context.Context) error { return nil }

func (s *servers) Roles(_ context.Context, desired []postgres.Login) ([]instance.Problem, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range desired {
		if d.Password == "" {
			return nil, fmt.Errorf("no password for %s", d.Name)
		}
	}
	s.callf("roles")
	return s.problems, nil
}

func (s *servers) Databases(context.Context, []instance.Database, []string) ([]instance.Problem, error) {
	s.set(func(s *servers) { s.callf("databases") })
	return nil, nil
}

// Archiver implements database.
func (s *servers) Archiver(context.Context) (postgres.Archiver, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.archiver, nil
}

// Beat implements database.
func (s *servers) Beat(context.Context) (string, time.Time, error) {
	return "000000010000000000000001", time.Now(), nil
}

// Release implements database.
func (s *servers) Release(_ context.Context, slot, position string) error {
	s.set(func(s *servers) { s.callf("release %s %s", slot, position) })
	return nil
}

// Fence implements database.
func (s *servers) Fence(context.Context) (postgres.Fenced, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callf("fence")
	f := postgres.Fenced{Followed: s.follows, Received: s.received}
	s.follows = ""
	return f, s.fenceErr
}

// Follows implements database.
func (s *servers) Follows(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follows, nil
}

// Configured implements database.
func (s *servers) Configured(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.configured, nil
}

// Unfence implements database.
func (s *servers) Unfence(context.Context) error {
	s.set(func(s *servers) {
		s.callf("unfence")
		s.follows = s.configured
	})
	return nil
}

// Replayed implements database.
func (s *servers) Replayed(context.Context) (uint64, error) { return 0, nil }

func (s *servers) Receiving(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receiving, nil
}
