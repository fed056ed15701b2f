package run

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// same checks that a database has the content that sums described.
func (s *source) same(t *testing.T, database, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(s.sums(t, database), "\n")); diff != "" {
		t.Errorf("database %s: -want, +got:\n%s", database, diff)
	}
}

// half creates part of a database, as a killed restore leaves it.
func (s *source) half(t *testing.T, database string) string {
	t.Helper()
	createDatabase(t, s, database)
	s.data(t, database, "load", "--rows=10", "--bulk=1")
	return s.sums(t, database)
}

// testOverwriting: a Restore that fails after it has dropped what a database held keeps its lock, and
// no Backup takes what is left for all of it.
func testOverwriting(t *testing.T, s *source, f *fixture, want string) {
	server, same, half := s.server(t), s.same, s.half

	t.Run("Interrupted", func(t *testing.T) {
		f.t = t
		half(t, "cut")
		p := f.beside(s, "cut")
		ctx, stop := context.WithCancel(t.Context())
		log := p.Log
		p.Log = onLine{log, "dropping what database", stop}
		if r, _ := p.do(ctx, backup.Restore, by("first"), overwriting); r.Failure == nil || r.Failure.Reason != backup.Interrupted {
			t.Fatalf("it was not interrupted: %+v", r.Failure)
		}
		p.Log = log
		if l, err := server.Locked(t.Context(), "cut"); err != nil || l == nil || !l.Began || l.Backup == "" {
			t.Errorf("nothing shows that the database may have been cut: %+v, %v", l, err)
		}
		p.fail(backup.Backup, backup.TargetLocked)
		p.succeed(backup.Restore, by("second"), overwriting)
		same(t, "cut", want)
		unlocked(t, server, "cut")
	})

	t.Run("Two", func(t *testing.T) {
		if s.engine != backupv1.PostgreSQL {
			t.Skip("the order of databases does not depend on the engine")
		}
		f.t = t
		p := f.beside(s, "postgres")
		p.task.Name = "order"
		p.task.Database.Databases = []string{"order_a", "order_b"}
		before := map[string]string{}
		for _, d := range p.task.Database.Databases {
			createDatabase(t, s, d)
			s.data(t, d, "exec", "CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
			before[d] = s.sums(t, d)
		}
		p.succeed(backup.Backup)
		ctx, stop := context.WithCancel(t.Context())
		log := p.Log
		p.Log = onLine{log, "restoring database order_a", stop}
		p.do(ctx, backup.Restore, by("first"), overwriting)
		p.Log = log
		same(t, "order_b", before["order_b"])
		unlocked(t, server, "order_b")
		p.fail(backup.Backup, backup.TargetLocked)
		p.succeed(backup.Restore, by("second"), overwriting)
		same(t, "order_a", before["order_a"])
		unlocked(t, server, "order_a")
	})

	t.Run("Denied", func(t *testing.T) {
		if s.engine != backupv1.PostgreSQL {
			t.Skip("only PostgreSQL drops all or nothing")
		}
		f.t = t
		createDatabase(t, s, "denied")
		s.data(t, "denied", "exec", "CREATE TABLE a (n int); CREATE SCHEMA theirs; CREATE TABLE theirs.t (n int); INSERT INTO theirs.t VALUES (1)")
		before := s.sums(t, "denied")
		p := f.beside(s, "denied")
		p.task.Name = "denied"
		p.succeed(backup.Backup)
		s.data(t, "denied", "exec", "CREATE ROLE denied LOGIN PASSWORD '"+strings.ReplaceAll(password, "'", "''")+"'; ALTER DATABASE denied OWNER TO denied")
		uri := *s
		uri.uri = func(database string) string { return asUser(t, s.uri(database), "denied") }
		p.from(&uri, "denied")
		p.fail(backup.Restore, backup.SourceDenied, by("first"), overwriting)
		same(t, "denied", before)
		unlocked(t, server, "denied")
	})
}
