package manager

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

func TestNudge(t *testing.T) {
	const period = memberPeriod
	follows := &patroni.Status{State: patroni.StateRunning, Role: patroni.RoleReplica, ReplicationState: patroni.StateStreaming}
	idle := &patroni.Status{State: patroni.StateRunning, Role: patroni.RoleReplica}
	cases := map[string]struct {
		reason string
		seen   []*patroni.Status // one per period
		want   int               // number of nudges
	}{
		"Follows":   {reason: "Who follows is left alone.", seen: []*patroni.Status{follows, follows, follows}},
		"Moment":    {reason: "Who does not for a moment is left alone.", seen: []*patroni.Status{follows, idle, follows, idle, follows}},
		"Stuck":     {reason: "Who does not for longer is nudged, again and again.", seen: []*patroni.Status{idle, idle, idle}, want: 2},
		"Archive":   {reason: "One that reads the archive alone does not follow.", seen: []*patroni.Status{idle, {State: patroni.StateRunning, Role: patroni.RoleReplica, ReplicationState: "in archive recovery"}}, want: 1},
		"Primary":   {reason: "A primary follows no server.", seen: []*patroni.Status{{State: patroni.StateRunning, Role: "primary"}, {State: patroni.StateRunning, Role: "primary"}}},
		"Starting":  {reason: "One that starts will be told.", seen: []*patroni.Status{{State: "starting", Role: patroni.RoleReplica}, {State: "starting", Role: patroni.RoleReplica}}},
		"NoPatroni": {reason: "Without Patroni there is no process to nudge.", seen: []*patroni.Status{nil, nil, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, config := installed(t)
			_, at := newServers(t)
			m, err := New(configOf(t, setName+"-1", at.URL), config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(m.Volume, instance.DataFolder, "postgresql.conf")
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
				b.recheckUpstream(s, now)
				if at := modified(t, file); at.After(last) {
					nudges, last = nudges+1, at
				}
				now = now.Add(period)
			}
			if nudges != tc.want {
				t.Errorf("%s\nnudge(): want %d, got %d", tc.reason, tc.want, nudges)
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != "port = 5432\n" {
				t.Errorf("recheckUpstream(): the file holds %q, %v", b, err)
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
