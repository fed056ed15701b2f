package archive

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
	"github.com/storeplane/storeplane/internal/pgtest"
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
	if err != nil || len(got.Lost) != 0 {
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
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || len(got.Lost) != 0 {
		t.Errorf("Complete() before the first backup: got %v, %v", got, err)
	}
	s.backUp()
	s.write()
	p.away(true)
	name := s.write()
	s.write()
	s.forget(name)
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err == nil {
		t.Errorf("Complete() without the store: got %v", got)
	}
	p.away(false)
	lost, _ := wal.Parse(name)
	want := wal.Range{First: lost, Last: lost}
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || len(got.Lost) != 1 || got.Lost[0] != want {
		t.Errorf("Complete(): got %v, %v, want %v", got, err, want)
	}
	s.write() // which has PostgreSQL try again at once
	s.archived()
	s.backUp()
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || len(got.Lost) != 0 {
		t.Errorf("Complete() after another backup: got %v, %v", got, err)
	}
}

// TestFill: a standby archives what the primary has lost, and nothing that it is
// still receiving.
func TestFill(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.backUp()
	standby := s.standby("two")
	standby.keep()
	p.away(true)
	name := s.write()
	lost, _ := wal.Parse(name)
	s.write()
	s.forget(name)
	p.away(false)
	db := postgres.Server{Socket: standby.Socket, Port: 5432}
	current, _ := wal.Parse(s.current())
	var replayed uint64
	p.eventually("the standby replays", func() bool {
		var err error
		replayed, err = db.Replayed(t.Context())
		return err == nil && replayed >= current.Number
	})
	gap := wal.Range{First: lost, Last: lost}
	p.must(Fill(t.Context(), standby.Config, gap, lost.Number, testLog{t}))
	if s.inStore()[lost] {
		t.Errorf("the standby has not received all of %s yet, and it is in the store", lost)
	}
	p.must(Fill(t.Context(), standby.Config, gap, replayed, testLog{t}))
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || len(got.Lost) != 0 {
		t.Errorf("Complete() of what a standby has filled: got %v, %v", got, err)
	}
}

// forget a segment, as though the volume of a former primary were gone.
func (s *server) forget(name string) {
	s.t.Helper()
	file := filepath.Join(s.DataDir(), "pg_wal", name)
	s.must(os.Remove(file))
	s.must(os.Remove(filepath.Join(filepath.Dir(file), "archive_status", name+".ready")))
}

// TestStoreLost: a store that has lost what it held is set up again, and what is
// on the volume gets there.
func TestStoreLost(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.keep()
	first := s.write()
	s.archived()
	s.backUp()
	p.must(os.RemoveAll(p.path("store")))
	p.must(os.Mkdir(p.path("store"), 0o700))
	s.write()
	p.eventually("the failure names what is missing", func() bool { return strings.Contains(s.Failure(), pgbackrest.ArchiveInfo) })
	t.Log(s.Failure())
	p.must(s.Create(t.Context(), testLog{t}))
	lost, _ := wal.Parse(first)
	current, _ := wal.Parse(s.current())
	if got, err := Complete(t.Context(), s.Config, current.String(), testLog{t}); err != nil || got.BackedUp || got.Compared.First.Number > lost.Number || got.Compared.Last.Number+1 != current.Number || len(got.Lost) != 0 {
		t.Errorf("Complete() without the backup, up to %s: got %+v, %v", current, got, err)
	}
	s.write()
	s.archived()
	if !s.inStore()[lost] {
		t.Errorf("%s is on the volume, and not in the store", first)
	}
	s.backUp()
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || !got.BackedUp || len(got.Lost) != 0 {
		t.Errorf("Complete() after another backup: got %+v, %v", got, err)
	}
}

// TestCreateLocked: while segments are on their way a repository that is set up is
// found to be so, though pgBackRest locks what sets it up.
func TestCreateLocked(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	stanza, err := s.Stanza()
	p.must(err)
	locks := p.path("locks")
	p.must(os.Mkdir(locks, 0o700))
	t.Setenv("PGBACKREST_LOCK_PATH", locks)
	// As pgBackRest locks it: the file names the process.
	lock, err := os.OpenFile(filepath.Join(locks, stanza+"-archive.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	p.must(err)
	defer func() { _ = lock.Close() }()
	p.must(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	p.must(s.Create(t.Context(), testLog{t}))
	p.must(os.RemoveAll(p.path("store/archive")))
	if err := s.Create(t.Context(), testLog{t}); !pgbackrest.Locked(err) {
		t.Errorf("Create() of one that is gone, while it is locked: got %v", err)
	}
}

// TestHoleBeforeBackup: a backup that was made before the archive was compared is
// newer than what the archive lacks. What of that is on the volume gets there, and
// the rest is named.
func TestHoleBeforeBackup(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.keep()
	s.write()
	s.archived()
	earlier := s.before(s.current())
	s.backUp()
	here := s.write()
	s.write()
	gone := s.write()
	s.write()
	s.archived()
	s.backUp()
	for _, name := range []string{earlier, here, gone} {
		files, err := filepath.Glob(p.path("store/archive/*/*/*/" + name + "-*"))
		p.must(err)
		for _, f := range files {
			p.must(os.Remove(f))
		}
	}
	p.must(os.Remove(filepath.Join(s.DataDir(), "pg_wal", gone)))
	lost, _ := wal.Parse(gone)
	got, err := Complete(t.Context(), s.Config, s.current(), testLog{t})
	if err != nil || len(got.Lost) != 1 || got.Lost[0] != (wal.Range{First: lost, Last: lost}) {
		t.Errorf("Complete(): got %+v, %v, want %s lost", got, err, gone)
	}
	s.write() // which has PostgreSQL look at once
	s.archived()
	there := s.inStore()
	if segment, _ := wal.Parse(here); !there[segment] {
		t.Errorf("%s is on the volume, and not in the store", here)
	}
	if segment, _ := wal.Parse(earlier); there[segment] {
		t.Errorf("%s is from before the oldest backup, and was archived again", earlier)
	}
}

// before is the segment before one.
func (s *server) before(name string) string {
	segment, ok := wal.Parse(name)
	if !ok || segment.Number == 0 {
		s.t.Fatalf("no segment comes before %s", name)
	}
	segment.Number--
	return segment.String()
}

// TestFull: what PostgreSQL cannot archive since the repository's volume is full is
// distinguished from other failures.
func TestFull(t *testing.T) {
	small := os.Getenv(pgtest.SmallVariable)
	if testing.Short() || small == "" {
		t.Skip("a volume cannot be mounted here, or pgBackRest is not waited for")
	}
	p := newPlace(t)
	p.must(os.Remove(p.path("store")))
	p.must(os.Symlink(small, p.path("store")))
	s := p.primary("one")
	s.write()
	s.archived()
	if text := s.Failure(); pgbackrest.Full(text) {
		t.Errorf("there is room, and the failure is %q", text)
	}
	f, err := os.Create(filepath.Join(small, "other"))
	p.must(err)
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the volume does not fill: %v", err)
	}
	s.exec("SELECT pg_logical_emit_message(true, 'test', string_agg(md5(i::text), '')) FROM generate_series(1, 100000) i")
	s.write()
	p.eventually("archiving fails since the volume is full", func() bool { return pgbackrest.Full(s.Failure()) })
	t.Log(s.Failure())
	p.must(f.Truncate(0))
	s.write()
	s.archived()
	if text := s.Failure(); text != "" {
		t.Errorf("there is room again, and the failure is %q", text)
	}
}

// zeros without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
