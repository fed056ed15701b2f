package archive

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// TestSwitchover: while the store is away the primary hands over. The standby
// has all WAL, and PostgreSQL takes it for archived, since it came by streaming:
// the archive has a hole for ever unless it is compared with what is there.
func TestSwitchover(t *testing.T) {
	p := newPlace(t)
	old := p.primary("old")
	old.backUp()
	next := old.standby("next")
	next.keep()
	old.write()
	old.archived()

	p.away(true)
	lost := old.write()
	old.write()
	old.stop()
	p.away(false)
	next.promote()
	next.write()
	next.archived()

	if got := next.gaps(); got == "[]" {
		t.Fatalf("the archive should have no %s, and has no gap", lost)
	}
	got, err := Complete(t.Context(), next.Config, next.current(), testLog{t})
	if err != nil || len(got) != 0 {
		t.Fatalf("Complete(): got %v, %v", got, err)
	}
	next.write() // which has PostgreSQL look at once
	next.archived()
	if got := next.gaps(); got != "[]" {
		t.Errorf("the archive has gaps: %s", got)
	}
}

// TestKeep: a server keeps WAL until it is archived and the slot is advanced.
func TestKeep(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.keep()
	p.away(true)
	waits := s.write()
	db := postgres.Server{Socket: s.Socket, Port: 5432}
	got, err := db.Archiver(t.Context())
	if err != nil || got.First != waits[8:] || got.Waiting == 0 || got.Current != s.current() {
		t.Errorf("Archiver() while %s waits: got %+v, %v", waits, got, err)
	}
	p.away(false)
	s.write()
	s.archived()
	if got, err = db.Archiver(t.Context()); err != nil || got.First != "" || got.Waiting != 0 {
		t.Errorf("Archiver() while nothing waits: got %+v, %v", got, err)
	}
	current, _ := wal.Parse(got.Current)
	// The second time there is nothing to do, and no slot is no fault.
	for _, slot := range []string{instance.ArchiveSlot, instance.ArchiveSlot, "none"} {
		p.must(db.Release(t.Context(), slot, current.Start()))
	}
	var at string
	if s.ask("SELECT restart_lsn::text FROM pg_replication_slots", &at); at != current.Start() {
		t.Errorf("want the slot at %s, got %s", current.Start(), at)
	}
}

// TestLost: what no volume holds any more is named, until a newer backup makes
// it of no use.
func TestLost(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || len(got) != 0 {
		t.Errorf("Complete() before the first backup: got %v, %v", got, err)
	}
	s.backUp()
	s.write()
	p.away(true)
	name := s.write()
	s.write()
	// As though the volume of a former primary were gone.
	file := filepath.Join(s.DataDir(), "pg_wal", name)
	p.must(os.Remove(file))
	p.must(os.Remove(filepath.Join(filepath.Dir(file), "archive_status", name+".ready")))
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err == nil {
		t.Errorf("Complete() without the store: got %v", got)
	}
	p.away(false)
	lost, _ := wal.Parse(name)
	want := wal.Range{First: lost, Last: lost}
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("Complete(): got %v, %v, want %v", got, err, want)
	}
	s.write() // which has PostgreSQL try again at once
	s.archived()
	s.backUp()
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || len(got) != 0 {
		t.Errorf("Complete() after another backup: got %v, %v", got, err)
	}
}
