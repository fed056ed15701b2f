package manager

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

func TestNudge(t *testing.T) {
	const period = memberPeriod
	follows := &patroni.Status{State: patroni.StateRunning, Role: patroni.RoleReplica, ReplicationState: patroni.StateStreaming}
	idle := &patroni.Status{State: patroni.StateRunning, Role: patroni.RoleReplica}
	cases := map[string]struct {
		reason string
		seen   []*patroni.Status // one a period
		want   int               // nudges
	}{
		"Follows":   {reason: "Who follows is left alone.", seen: []*patroni.Status{follows, follows, follows}},
		"Moment":    {reason: "Who does not for a moment is left alone.", seen: []*patroni.Status{follows, idle, follows, idle, follows}},
		"Stuck":     {reason: "Who does not for longer is nudged, again and again.", seen: []*patroni.Status{idle, idle, idle}, want: 2},
		"Archive":   {reason: "One that reads the archive alone does not follow.", seen: []*patroni.Status{idle, {State: patroni.StateRunning, Role: patroni.RoleReplica, ReplicationState: "in archive recovery"}}, want: 1},
		"Primary":   {reason: "A primary follows nobody.", seen: []*patroni.Status{{State: patroni.StateRunning, Role: "primary"}, {State: patroni.StateRunning, Role: "primary"}}},
		"Starting":  {reason: "One that starts will be told.", seen: []*patroni.Status{{State: "starting", Role: patroni.RoleReplica}, {State: "starting", Role: patroni.RoleReplica}}},
		"NoPatroni": {reason: "Without Patroni there is nobody to nudge.", seen: []*patroni.Status{nil, nil, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, config := installed(t)
			_, at := newServers(t)
			m, err := New(configOf(t, setName+"-1", at.URL), config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(m.Volume, "pgdata", "postgresql.conf")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("port = 5432\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			b := &member{Manager: m}
			nudges, now := 0, time.Now().Add(time.Hour)
			last := modified(t, file)
			for _, s := range tc.seen {
				b.nudge(s, now)
				if at := modified(t, file); at.After(last) {
					nudges, last = nudges+1, at
				}
				now = now.Add(period)
			}
			if nudges != tc.want {
				t.Errorf("%s\nnudge(): want %d, got %d", tc.reason, tc.want, nudges)
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != "port = 5432\n" {
				t.Errorf("nudge(): the file holds %q, %v", b, err)
			}
		})
	}
}

// TestRevive: a standby that follows no server although another one leads, and that nudging
// does not help, is restarted.
func TestRevive(t *testing.T) {
	idle := &patroni.Status{State: patroni.StateRunning, Role: patroni.RoleReplica}
	follows := &patroni.Status{State: patroni.StateRunning, Role: patroni.RoleReplica, ReplicationState: patroni.StateStreaming}
	cases := map[string]struct {
		reason   string
		prepare  func(*servers)
		status   *patroni.Status
		after    time.Duration
		restarts int
	}{
		"Stuck":     {reason: "PostgreSQL follows no server for long.", status: idle, after: reviveAfter + 2*memberPeriod, restarts: 1},
		"Soon":      {reason: "Nudging helps first.", status: idle, after: reviveAfter - memberPeriod},
		"Again":     {reason: "It has time to come back before it is tried again.", status: idle, after: reviveAgain + reviveAfter + 2*memberPeriod, restarts: 2},
		"Follows":   {reason: "One that follows is left alone.", status: follows, after: 2 * reviveAfter},
		"Connects":  {reason: "One that cannot reach its primary tries by itself, and a restart helps nothing.", prepare: func(s *servers) { s.follows = "host=192.0.2.1" }, status: idle, after: 2 * reviveAfter},
		"NoLeader":  {reason: "Where no server leads there is none to follow.", prepare: func(s *servers) { s.cluster.Members[0].Role = "replica" }, status: idle, after: 2 * reviveAfter},
		"Itself":    {reason: "One that leads in a moment follows none.", prepare: func(s *servers) { s.cluster.Members[0].Role, s.cluster.Members[1].Role = "replica", "leader" }, status: idle, after: 2 * reviveAfter},
		"NoPatroni": {reason: "Without Patroni nothing is known.", after: 2 * reviveAfter},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, config := installed(t)
			s, at := newServers(t)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			m, err := New(configOf(t, setName+"-1", at.URL), config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			m.server = s
			b, now := &member{Manager: m}, time.Now()
			for end := now.Add(tc.after); now.Before(end); now = now.Add(memberPeriod) {
				b.nudge(tc.status, now)
				b.revive(t.Context(), now)
			}
			restarts := 0
			for _, call := range s.called() {
				if call == "restart" {
					restarts++
				}
			}
			if restarts != tc.restarts {
				t.Errorf("%s\nrevive(...): got %d restarts, want %d: %v", tc.reason, restarts, tc.restarts, s.called())
			}
		})
	}
}

func modified(t *testing.T, file string) time.Time {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}
