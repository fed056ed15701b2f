package pgdata_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
)

const write = "INSERT INTO t SELECT generate_series(1, 1000)"

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("cannot wait any longer until %s", what)
		}
	}
}

// caughtUp waits until a standby has replayed what its primary has written.
func caughtUp(t *testing.T, primary, standby *pgdatatest.Volume) {
	t.Helper()
	at := primary.Ask("SELECT pg_current_wal_flush_lsn()")
	await(t, "the standby has caught up", func() bool {
		return standby.Ask("SELECT pg_last_wal_replay_lsn() >= '"+at+"'") == "t"
	})
}

// TestRead: what Read returns for the volumes of two servers shows which one has more, however the
// servers ended.
func TestRead(t *testing.T) {
	read := func(v *pgdatatest.Volume) instance.Data {
		t.Helper()
		d := pgdata.Read(t.Context(), v.Data)
		if d.State != instance.DataWhole || d.System == "" || d.Written == "" || d.Position == 0 {
			t.Fatalf("Read(...): got %+v, want a database", d)
		}
		return d
	}
	same := func(reason string, a, b instance.Data) {
		t.Helper()
		if a.Timeline != b.Timeline || a.Position != b.Position || a.System != b.System {
			t.Errorf("%s: got %+v and %+v, want the same", reason, a, b)
		}
	}
	a := pgdatatest.New(t).Begin().Start()
	a.Ask("CREATE TABLE t (n int)")
	b := pgdatatest.New(t).Copy(a).Start()
	a.Ask(write)
	caughtUp(t, a, b)
	a.Stop("fast")
	await(t, "the standby has the primary's last record", func() bool { return pgdata.Read(t.Context(), b.Data).Position >= read(a).Position })
	b.Stop("fast")
	same("A standby that followed to the last has all", read(a), read(b))

	// One server continues, and is killed before a checkpoint records that.
	before := read(a)
	a.Start().Ask(write)
	a.Stop("immediate")
	if after := read(a); after.Position <= before.Position || after.Timeline != 1 {
		t.Errorf("after a crash: got %+v, want more than %+v", after, before)
	}

	// The other one follows, is killed too, and has as much.
	a.Start()
	b.Start()
	a.Ask(write)
	caughtUp(t, a, b)
	b.Stop("immediate")
	a.Stop("immediate")
	same("Both were killed", read(a), read(b))

	// It is promoted, and killed before its first checkpoint is complete.
	b.Start()
	b.Promote()
	b.Stop("immediate")
	old, promoted := read(a), read(b)
	if promoted.Timeline != 2 || len(promoted.History) != 1 || promoted.History[0].Timeline != 1 || promoted.History[0].End <= old.Position {
		t.Errorf("a server that took over: got %+v, want one on timeline 2 that came from %+v", promoted, old)
	}

	// Damaged data is reported as such.
	file := filepath.Join(a.Data, "global", "pg_control")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[100] ^= 0xff
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := pgdata.Read(t.Context(), a.Data); got.State != instance.DataUnreadable || !strings.Contains(got.Problem, "control file") {
		t.Errorf("a damaged control file: got %+v", got)
	}
}

// TestReadHalfCopied: an interrupted copy is recognized.
func TestReadHalfCopied(t *testing.T) {
	a, b := pgdatatest.New(t).Begin().Start(), pgdatatest.New(t)
	kill := b.Begins("pg_basebackup", "-D", b.Data, "-c", "fast", "-X", "stream", "--max-rate=1M", "-d", a.Conninfo())
	await(t, "it is under way", func() bool {
		_, err := os.Stat(filepath.Join(b.Data, "PG_VERSION"))
		return err == nil
	})
	kill()
	if got := pgdata.Read(t.Context(), b.Data); got.State != instance.DataCopy {
		t.Errorf("Read(...): got %+v, want an unfinished copy", got)
	}
}

// TestInitdbKilled: what initdb leaves when it is killed, at any moment, is not taken for a database,
// and is set aside for the next one. A database is, once a server has run with it.
func TestInitdbKilled(t *testing.T) {
	for _, until := range []string{"PG_VERSION", "global/pg_control", "base/4", "base/5"} {
		v := pgdatatest.New(t)
		kill := v.Begins("initdb", "-D", v.Data, "-U", "postgres", "--auth=trust", "-k")
		await(t, until+" is there", func() bool {
			_, err := os.Stat(filepath.Join(v.Data, until))
			return err == nil
		})
		kill()
		if got := pgdata.Read(t.Context(), v.Data); got.State != instance.DataEmpty {
			t.Errorf("killed as %s was there: got %+v, want no data", until, got)
		}
		aside, err := pgdata.SetAsideNeverStarted(v.Data)
		if err != nil || aside == "" {
			t.Errorf("killed as %s was there: it is not set aside: %q, %v", until, aside, err)
		}
		v.Begin()
		v.Start().Stop("fast")
		if aside, err := pgdata.SetAsideNeverStarted(v.Data); err != nil || aside != "" {
			t.Errorf("a database that has run is set aside as %q, %v", aside, err)
		}
		if got := pgdata.Read(t.Context(), v.Data); got.State != instance.DataWhole {
			t.Errorf("a database that has run: got %+v", got)
		}
	}
}

// TestNeverStartedUnreadable: a file that cannot be read is not taken for one that does not exist.
func TestNeverStartedUnreadable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "PG_VERSION"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("postmaster.opts", filepath.Join(dir, "postmaster.opts")); err != nil {
		t.Fatal(err)
	}
	if got, err := pgdata.NeverStarted(dir); got || err == nil {
		t.Errorf("NeverStarted(...): got %t, %v, want an error", got, err)
	}
	if aside, err := pgdata.SetAsideNeverStarted(dir); aside != "" || err == nil {
		t.Errorf("it is set aside as %q, %v", aside, err)
	}
}

// TestReadStates: the states of folders without a database.
func TestReadStates(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  []string
		want   instance.DataState
	}{
		"None":    {reason: "There is no folder yet.", want: instance.DataEmpty},
		"Empty":   {reason: "What a file system brings is no data.", files: []string{"lost+found/x", ".snapshot/x"}, want: instance.DataEmpty},
		"Copy":    {reason: "A base backup's last file is the control file.", files: []string{"backup_label", "PG_VERSION", "base/1/1"}, want: instance.DataCopy},
		"Unknown": {reason: "Of data without both it is not known what it was.", files: []string{"PG_VERSION", "base/1/1", "postmaster.opts"}, want: instance.DataUnreadable},
		"Initdb":  {reason: "What initdb makes is no data until a server has run.", files: []string{"PG_VERSION", "base/1/1"}, want: instance.DataEmpty},
		"Began":   {reason: "It makes the version first.", files: []string{"PG_VERSION"}, want: instance.DataEmpty},
		"Full":    {reason: "It makes three databases.", files: []string{"PG_VERSION", "base/1/1", "base/4/1", "base/5/1", "base/16384/1"}, want: instance.DataUnreadable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pgdata")
			for _, f := range tc.files {
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(f)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := pgdata.Read(t.Context(), dir)
			if diff := cmp.Diff(tc.want, got.State); diff != "" {
				t.Errorf("%s\nRead(...): -want, +got:\n%s\n%s", tc.reason, diff, got.Problem)
			}
		})
	}
}
