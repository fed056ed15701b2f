package rewind_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
	"github.com/storeplane/storeplane/internal/instance/rewind"
)

// parted returns a primary and its predecessor, which went on alone and was stopped. The
// predecessor keeps the WAL that pg_rewind needs, or only what is kept by default.
func parted(t *testing.T, keeps bool) (primary, old *pgdatatest.Volume) {
	t.Helper()
	old = pgdatatest.New(t).Begin()
	if keeps {
		old.Configure("wal_keep_size = 1GB")
	}
	old.Start()
	old.Ask("CREATE TABLE t (n int)")
	primary = pgdatatest.New(t).Copy(old).Start().Promote()
	primary.Ask("INSERT INTO t VALUES (1)")
	primary.Ask("CHECKPOINT")
	old.Ask("INSERT INTO t VALUES (2)")
	old.Ask("CHECKPOINT")
	old.Ask("SELECT pg_switch_wal()")
	old.Ask("INSERT INTO t VALUES (3)")
	old.Stop("fast")
	return primary, old
}

// TestRun: only data that cannot be rewound is moved or removed, to make room for a copy.
func TestRun(t *testing.T) {
	cases := map[string]struct {
		reason  string
		keeps   bool // the WAL that pg_rewind needs
		away    bool // the primary is stopped
		noRoom  bool
		code    int
		stays   bool
		aside   int
		reports string
	}{
		"Rewinds": {reason: "One that succeeds is left alone.", keeps: true, stays: true},
		"Fails":   {reason: "One that fails leaves its data aside.", code: 1, aside: 1, reports: "set aside in folder pgdata-rewind-"},
		"NoRoom":  {reason: "Where there is no room it is removed.", noRoom: true, code: 1, reports: "no room"},
		"Away":    {reason: "Without a primary the data may be all that there is.", away: true, code: 1, stays: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			primary, old := parted(t, tc.keeps)
			if tc.away {
				primary.Stop("fast")
			}
			var out, log bytes.Buffer
			r := rewind.Rewind{
				Command: old.As("pg_rewind", "-D", old.Data, "--source-server", primary.Conninfo()+" target_session_attrs=read-write fallback_application_name=Patroni"),
				Stdout:  &out, Stderr: &log, SetAside: volume.SetAside,
			}
			if tc.noRoom {
				r.SetAside = func(string, string) (string, error) { return "", volume.ErrNoRoom }
			}
			if got := r.Run(t.Context()); got != tc.code {
				t.Errorf("%s\nRun(): got %d, want %d\n%s%s", tc.reason, got, tc.code, &out, &log)
			}
			_, err := os.Stat(old.Data)
			aside, _ := filepath.Glob(old.Data + "-rewind-*")
			if (err == nil) != tc.stays || len(aside) != tc.aside {
				t.Errorf("%s\nthe data: %v, aside: %v\n%s", tc.reason, err, aside, &log)
			}
			report, _ := os.ReadFile(filepath.Join(old.Dir, instance.RewindStateFile))
			if !strings.Contains(string(report), tc.reports) || (tc.reports == "") != (len(report) == 0) {
				t.Errorf("%s\nit reports %q, want %q", tc.reason, report, tc.reports)
			}
			if tc.aside == 1 {
				if d := pgdata.Read(t.Context(), aside[0]); d.State != instance.DataWhole {
					t.Errorf("%s\naside is %+v, want all that there was", tc.reason, d)
				}
			}
		})
	}
}

// TestRunAsks: Patroni finds out by --help whether pg_rewind exists.
func TestRunAsks(t *testing.T) {
	v := pgdatatest.New(t)
	var out, log bytes.Buffer
	r := rewind.Rewind{Command: v.As("pg_rewind", "--help"), Stdout: &out, Stderr: &log, SetAside: volume.SetAside}
	if got := r.Run(t.Context()); got != 0 || !strings.Contains(out.String(), "pg_rewind") {
		t.Errorf("Run(): got %d, %q, want the help", got, &out)
	}
	r.Command = []string{"/no/such/program", "--help"}
	if got := r.Run(t.Context()); got == 0 || !strings.Contains(log.String(), "cannot run pg_rewind") {
		t.Errorf("Run(): got %d, %q, want a failure", got, &log)
	}
}
