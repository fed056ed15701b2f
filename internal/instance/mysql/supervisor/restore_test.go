package supervisor

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

// TestRestore: a cluster of three is filled from a copy of another cluster's server. Its servers know each
// other by their own certificates, and its data has an identifier of its own.
func TestRestore(t *testing.T) {
	source := newWorld(t, 1)
	source.start(0)
	source.until("a primary", upWithin, func() bool { return source.leader() != "" })
	source.prepare()
	if err := source.server(pod(0)).server.Dumper(t.Context(), "dumps"); err != nil {
		t.Fatal(err)
	}
	if problems, err := source.server(pod(0)).server.Users(t.Context(), []server.Login{{Name: "former", Password: "leaked"}}); err != nil || len(problems) > 0 {
		t.Fatalf("Users(...): %v, %v", problems, err)
	}
	backup := filepath.Join(source.dir, "backup")
	if err := source.execute(pod(0), "INSERT INTO app.ledger (id) VALUES (1), (2), (3)", "CLONE LOCAL DATA DIRECTORY = '"+backup+"'"); err != nil {
		t.Fatal(err)
	}
	before := source.query(pod(0), systemQuery)
	source.leave(0)

	w := newWorld(t, 3)
	var fetched atomic.Int32
	w.fetch = func(_ context.Context, folder string, progress func(string)) (mysqld.Replay, error) {
		fetched.Add(1)
		progress("Restoring backup x")
		replay := func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "DELETE FROM app.ledger WHERE id = 3")
			return err
		}
		return replay, os.CopyFS(folder, os.DirFS(backup))
	}
	// The first server starts after another one.
	for _, n := range []int{2, 1, 0} {
		w.start(n)
	}
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	w.until("three members", joinWithin, func() bool { return w.online() == 3 })
	for n := range 3 {
		if got := w.query(pod(n), "SELECT count(*) FROM app.ledger"); got != "2" {
			t.Errorf("%s has %s rows, want the 2 that are left after the backup", pod(n), got)
		}
		if s := w.server(pod(n)).Restoring(); s != nil {
			t.Errorf("%s reports a restore that has ended: %+v", pod(n), s)
		}
	}
	after := w.query(w.leader(), systemQuery)
	if after == "" || after == before {
		t.Errorf("the data has identifier %q, and that of the backup is %q", after, before)
	}
	for n := range 3 {
		if got := w.query(pod(n), systemQuery); got != after {
			t.Errorf("%s has identifier %q of the data, and the primary %q", pod(n), got, after)
		}
	}
	if n := fetched.Load(); n != 1 {
		t.Errorf("%d servers have restored the backup, want one", n)
	}
	if err := w.execute(w.leader(), "INSERT INTO app.ledger (id) VALUES (4)"); err != nil {
		t.Error(err)
	}
	former := w.open(w.leader(), "former", "leaked", "")
	defer func() { _ = former.Close() }()
	if err := former.PingContext(t.Context()); err == nil {
		t.Error("a user of the claim that was backed up connects, and this claim does not have it")
	}
}

const systemQuery = "SELECT COALESCE(MAX(JSON_UNQUOTE(JSON_EXTRACT(user_attributes, '$.metadata." + instance.MySQLSystemAttribute + "'))), '') FROM mysql.user WHERE user = '" + instance.MySQLBackupUser + "'"

// TestRestoreFails: a restore that fails is reported and begun again only after a while, and leaves nothing
// that could be taken for a database.
func TestRestoreFails(t *testing.T) {
	volume, calls := t.TempDir(), 0
	s := New(Config{
		Pod: pod(0), Program: "no-such-program", Files: mysqld.Files{Volume: volume},
		Fetch: func(_ context.Context, folder string, progress func(string)) (mysqld.Replay, error) {
			calls++
			progress("Restoring backup x")
			return nil, errors.Join(errors.New("the store is away"), os.MkdirAll(filepath.Join(folder, "mysql"), 0o700))
		},
	}, nil, slog.New(slog.DiscardHandler), io.Discard)
	if err := s.restore(t.Context(), &group.Record{Founder: pod(0)}); err == nil {
		t.Error("restore(): want an error")
	}
	if diff := cmp.Diff(&instance.RestoreState{Message: "the store is away", Failed: true}, s.Restoring()); diff != "" {
		t.Errorf("what is reported: -want, +got:\n%s", diff)
	}
	if err := s.restore(t.Context(), &group.Record{Founder: pod(0)}); !errors.Is(err, errNotYet) || calls != 1 {
		t.Errorf("restore() again at once: want nothing, got %d calls and %v", calls, err)
	}
	if data, err := s.Files.Data(); err != nil || data != "empty" {
		t.Errorf("Data(): want empty, got %q, %v", data, err)
	}
	s.restoreFailed = time.Now().Add(-2 * restoreAgain)
	if err := s.restore(t.Context(), &group.Record{Founder: pod(0)}); err == nil || calls != 2 {
		t.Errorf("restore() after a while: want another one, got %d calls and %v", calls, err)
	}
}

// elsewhere is a cluster in which another server restores the backup.
type elsewhere struct{ Outside }

func (elsewhere) Address(pod string) string { return pod }

func (elsewhere) Cluster(context.Context) (group.Cluster, error) {
	volumes := []group.Volume{{Pod: pod(0), Claim: "data-0", UID: "uid-0"}, {Pod: pod(1), Claim: "data-1", UID: "uid-1"}}
	return group.Cluster{Size: 2, Ordinal: ordinal, Volumes: volumes, Record: group.Record{Founder: pod(1)}, Restoring: true}, nil
}

func (elsewhere) Record(context.Context) (group.Record, error) {
	return group.Record{Founder: pod(1)}, nil
}

func (elsewhere) Peers(context.Context, ...string) map[string]group.Report {
	return map[string]group.Report{pod(1): {Pod: pod(1), Claim: "uid-1", Data: group.Empty}}
}

// TestRestoreGivenUp: a server that another one has replaced while it restored takes nothing over, and its
// failure does not stay in the report.
func TestRestoreGivenUp(t *testing.T) {
	s := New(Config{Pod: pod(0), Claim: "uid-0"}, elsewhere{}, slog.New(slog.DiscardHandler), io.Discard)
	if err := s.stillMine(t.Context()); !errors.Is(err, errNotMine) {
		t.Errorf("stillMine(): want %v, got %v", errNotMine, err)
	}
	s.note(&instance.RestoreState{Message: errNotMine.Error(), Failed: true})
	if err := s.decide(t.Context(), &group.Report{Pod: pod(0), Claim: "uid-0", Data: group.Empty}); err != nil {
		t.Fatal(err)
	}
	if got := s.Restoring(); got != nil {
		t.Errorf("the server reports %+v of a restore that another one makes", got)
	}
}
