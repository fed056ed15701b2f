package run

import (
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestPairs: a backup of each engine to each store can be verified and restored, and the restored
// rows are the same.
func TestPairs(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	for engine, start := range sources {
		t.Run(string(engine), func(t *testing.T) {
			if engine != backupv1.PostgreSQL {
				long(t)
			}
			s := start(t)
			createDatabase(t, s, "shop")
			s.data(t, "shop", "load", "--rows=5000", "--bulk=3")
			want := s.sums(t, "shop")
			n := 0
			for kind, startStore := range destinations {
				n++
				encrypted := n%2 == 0
				t.Run(string(kind), func(t *testing.T) {
					if kind != backupv1.S3 {
						long(t)
					}
					f := newFixture(t, s, "shop", startStore(t))
					if encrypted {
						f.task.Encrypted = true
						write(t, "", map[string]string{f.Key: identity.String() + "\n"})
					}
					f.succeed(backup.Check)
					made := f.succeed(backup.Backup)
					if made.Backup == nil || made.Catalog == nil || made.Catalog.Count != 1 || made.Backup.Size == 0 {
						t.Fatalf("the report lacks what was made: %+v", made)
					}
					verified := f.succeed(backup.Verify)
					if verified.Rows < 5000 || verified.Catalog.Verified == nil || verified.Catalog.Verified.ID != made.Backup.ID {
						t.Errorf("the report lacks what was verified: %+v", verified)
					}
					target := "copy_" + string(kind)
					f.from(s, target)
					restored := f.succeed(backup.Restore)
					if restored.Rows != verified.Rows {
						t.Errorf("%d rows were restored, and %d verified", restored.Rows, verified.Rows)
					}
					if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(s.sums(t, target), "\n")); diff != "" {
						t.Errorf("what was restored differs: -want, +got:\n%s", diff)
					}
					f.fail(backup.Restore, backup.TargetNotEmpty)
					f.succeed(backup.Restore, func(t *backup.Task) { t.Overwrite = true })
					f.succeed(backup.Delete)
					if left := f.succeed(backup.Check).Catalog; left.Count != 0 {
						t.Errorf("%d backups are left after all were deleted", left.Count)
					}
				})
			}
		})
	}
}

// createDatabase creates a database, if the engine needs that.
func createDatabase(t *testing.T, s *source, name string) {
	t.Helper()
	switch s.engine {
	case "postgresql":
		s.data(t, "postgres", "exec", `CREATE DATABASE "`+name+`"`)
	case "mysql":
		s.data(t, "mysql", "exec", "CREATE DATABASE `"+name+"`")
	default: // the first write creates it
	}
}
