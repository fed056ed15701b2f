package manager

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// TestRewound: a failed pg_rewind is reported as one event.
func TestRewound(t *testing.T) {
	a, config := installed(t)
	_, at := newServers(t)
	m, err := New(configOf(t, setName+"-1", at.URL), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.Volume, instance.RewindStateFile), []byte(`{"message":"pg_rewind failed"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &member{Manager: m}
	b.rewound(t.Context())
	b.rewound(t.Context())
	if want := []string{"Warning ReplicaReinitializing: " + setName + "-1 copies the primary: pg_rewind failed"}; !slices.Equal(a.events(), want) {
		t.Errorf("rewound(): got %q, want %q", a.events(), want)
	}
}

// TestResume: an unfinished copy is made again.
func TestResume(t *testing.T) {
	empty := &patroni.Status{State: patroni.StateStopped, Role: "uninitialized"}
	leads := []patroni.Member{{Name: setName + "-0", Role: "leader", State: patroni.StateRunning}}
	always := func(s *patroni.Status) []*patroni.Status { return []*patroni.Status{s, s, s} }
	cases := map[string]struct {
		reason  string
		seen    []*patroni.Status // one per period
		members []patroni.Member
		files   []string
		want    bool
	}{
		"Unfinished": {reason: "Patroni leaves it at that.", seen: always(empty), members: leads, files: []string{"backup_label", "PG_VERSION"}, want: true},
		"Moment":     {reason: "Patroni may be about to copy.", seen: always(empty)[:1], members: leads, files: []string{"backup_label", "PG_VERSION"}},
		"Copies":     {reason: "It copies.", seen: always(&patroni.Status{State: "creating replica", Role: "uninitialized"}), members: leads, files: []string{"backup_label", "PG_VERSION"}},
		"NoLeader":   {reason: "There is none to copy.", seen: always(empty), files: []string{"backup_label", "PG_VERSION"}},
		"Empty":      {reason: "Patroni fills an empty folder by itself.", seen: always(empty), members: leads},
		"Unknown":    {reason: "What is not known to be a copy is not thrown away.", seen: always(empty), members: leads, files: []string{"PG_VERSION", "base"}},
		"NoPatroni":  {reason: "Without Patroni nothing is known.", seen: always(nil), members: leads, files: []string{"backup_label", "PG_VERSION"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, config := installed(t)
			fake, at := newServers(t)
			fake.set(func(s *servers) { s.cluster = patroni.Cluster{Members: tc.members} })
			c := configOf(t, setName+"-1", at.URL)
			if err := os.Mkdir(filepath.Join(c.Volume, instance.DataFolder), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, f := range tc.files {
				if err := os.WriteFile(filepath.Join(c.Volume, instance.DataFolder, f), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m, err := New(c, config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			b, now := &member{Manager: m}, time.Now()
			for _, s := range tc.seen {
				b.resume(t.Context(), s, now)
				now = now.Add(memberPeriod)
			}
			if got := slices.Contains(fake.called(), "reinitialize"); got != tc.want {
				t.Errorf("%s\nresume(): reinitialized %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
