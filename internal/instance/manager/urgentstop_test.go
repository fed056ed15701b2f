package manager

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
)

// TestHurry: a running server whose pod is about to be killed is stopped within the time that is
// left.
func TestHurry(t *testing.T) {
	// The archive command takes longer than a pod that is about to be killed has.
	slow := []string{"archive_mode = on", "archive_command = 'sleep 10'"}
	cases := map[string]struct {
		reason string
		config []string
		mark   string
		begin  error
		// stays means that the server still runs when the hook ends.
		stays bool
		// atLeast is the shortest duration, and state the state of the data as pg_controldata shows
		// it.
		atLeast time.Duration
		state   string
		grace   time.Duration
	}{
		"Clean":   {reason: "One that can stops cleanly.", state: "shut down"},
		"Slow":    {reason: "One that cannot stops in time nevertheless.", config: slow, atLeast: cleanWithin, state: "shut down"},
		"Grace":   {reason: "It has what its pod has.", config: slow, grace: 4 * time.Second, atLeast: 4*time.Second - leaveTime, state: "shut down"},
		"Begins":  {reason: "So does one whose Patroni does not begin.", begin: errors.New("no such process"), atLeast: cleanWithin, state: "in production"},
		"Standby": {reason: "A standby has no lock, and is left to stop in its own time.", mark: "standby.signal", stays: true, state: "in archive recovery"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := pgdatatest.New(t).Begin()
			v.Configure(tc.config...)
			if tc.mark != "" {
				if err := os.WriteFile(filepath.Join(v.Data, tc.mark), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			v.Start()
			if tc.mark == "" {
				v.Ask("CREATE TABLE acknowledged AS SELECT 1 AS id")
			}
			s := &stopper{
				Config: Config{Volume: v.Dir, Socket: v.Dir}, log: slog.New(slog.DiscardHandler),
				begin: func() error {
					if tc.begin != nil {
						return tc.begin
					}
					return pgdata.Signal(v.Data, syscall.SIGINT)
				},
			}
			start := time.Now()
			s.hurry(t.Context(), tc.grace)
			if _, err := os.Stat(filepath.Join(v.Dir, instance.HurriedFile)); err != nil {
				t.Errorf("%s the archive command is not told: %v", tc.reason, err)
			}
			if !tc.stays {
				eventually(t, tc.reason, func() bool { return pgdata.Stopped(v.Data) })
			}
			took := time.Since(start)
			if took < tc.atLeast || tc.atLeast > 0 && took > tc.atLeast+5*time.Second {
				t.Errorf("%s it stopped after %s, want %s", tc.reason, took, tc.atLeast)
			}
			if got := v.Run("pg_controldata", v.Data); !strings.Contains(got, tc.state+"\n") {
				t.Errorf("%s want it %s, got:\n%s", tc.reason, tc.state, got)
			}
			if tc.mark != "" {
				return
			}
			v.Configure("archive_mode = off")
			if got := v.Start().Ask("SELECT id FROM acknowledged"); got != "1" {
				t.Errorf("%s what was acknowledged is %q", tc.reason, got)
			}
		})
	}
}
