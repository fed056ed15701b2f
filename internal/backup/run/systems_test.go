package run

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestSystems: the backups of a database that is lost stay, and are not hidden, when another one of
// its name backs up to the same place.
func TestSystems(t *testing.T) {
	lost, next := startPostgreSQL(t), startPostgreSQL(t)
	createDatabase(t, lost, "shop")
	lost.data(t, "shop", "load", "--rows=20", "--bulk=1")
	want := lost.sums(t, "shop")
	f := newFixture(t, lost, "shop", newVolume(t))
	f.task.Keep = &backupv1.Keep{Last: 1}
	old := f.succeed(backup.Backup).Backup.ID

	createDatabase(t, next, "shop")
	f.from(next, "shop")
	f.succeed(backup.Backup)
	r := f.succeed(backup.Backup)
	if r.Expired != 1 || r.Catalog.Count != 1 || len(r.Catalog.Others) != 1 || r.Catalog.Others[0].Count != 1 || r.Catalog.System == r.Catalog.Others[0].ID {
		t.Errorf("want one expired, one kept, and one of another system, got %d, %+v", r.Expired, r.Catalog)
	}

	createDatabase(t, next, "shop_copy")
	f.from(next, "shop_copy")
	refused := f.fail(backup.Restore, backup.InvalidTask, by("first"))
	if !strings.Contains(refused.Failure.Message, "there are 1 of "+r.Catalog.Others[0].ID) {
		t.Errorf("it does not list the other one: %s", refused.Failure.Message)
	}
	f.succeed(backup.Restore, by("second"), func(t *backup.Task) { t.ID = old })
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(next.sums(t, "shop_copy"), "\n")); diff != "" {
		t.Errorf("the lost one's content: -want, +got:\n%s", diff)
	}
}
