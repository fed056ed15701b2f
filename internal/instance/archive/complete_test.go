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

// TestSwitchover: the primary hands over while the store is unavailable. The standby has all WAL,
// but PostgreSQL takes what came by streaming for archived: the archive keeps a gap unless Complete
// compares it with the volume.
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
	next.write() // which makes PostgreSQL archive at once
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
	// The second call finds nothing to do, and a missing slot is no error.
	for _, slot := range []string{instance.ArchiveSlot, instance.ArchiveSlot, "none"} {
		p.must(db.Release(t.Context(), slot, current.Start()))
	}
	var at string
	if s.ask("SELECT restart_lsn::text FROM pg_replication_slots", &at); at != current.Start() {
		t.Errorf("want the slot at %s, got %s", current.Start(), at)
	}
}

// TestLost: WAL that no volume holds any more is reported as lost, until a newer backup makes it
// unnecessary.
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
	s.write() // which makes PostgreSQL retry at once
	s.archived()
	s.backUp()
	if got, err := Complete(t.Context(), s.Config, s.current(), testLog{t}); err != nil || len(got.Lost) != 0 {
		t.Errorf("Complete() after another backup: got %v, %v", got, err)
	}
}

// TestFill: a standby archives what the primary has lost, but no segment that it is still
// receiving.
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

// forget removes a segment from the volume, as if the volume of a former primary were gone.
func (s *server) forget(name string) {
	s.t.Helper()
	file := filepath.Join(s.DataDir(), "pg_wal", name)
	s.must(os.Remove(file))
	s.must(os.Remove(filepath.Join(filepath.Dir(file), "archive_status", name+".ready")))
}

// TestStoreLost: a store that has lost its content is set up again, and the WAL on the volume is
// archived into it.
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

// TestCreateLocked: Create finds a repository that is set up already, even while pgBackRest holds
// the lock because segments are being archived.
func TestCreateLocked(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	stanza, err := s.Stanza()
	p.must(err)
	locks := p.path("locks")
	p.must(os.Mkdir(locks, 0o700))
	t.Setenv("PGBACKREST_LOCK_PATH", locks)
	// pgBackRest locks it like this: the file names the process.
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

// TestHoleBeforeBackup: the newest backup was made before the archive was compared and after the
// gap. Missing segments that are on the volume are archived, and the others are reported as lost.
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
	s.write() // which makes PostgreSQL archive at once
	s.archived()
	there := s.inStore()
	if segment, _ := wal.Parse(here); !there[segment] {
		t.Errorf("%s is on the volume, and not in the store", here)
	}
	if segment, _ := wal.Parse(earlier); there[segment] {
		t.Errorf("%s is from before the oldest backup, and was archived again", earlier)
	}
}

// before returns the name of the segment before the given one.
func (s *server) before(name string) string {
	segment, ok := wal.Parse(name)
	if !ok || segment.Number == 0 {
		s.t.Fatalf("no segment comes before %s", name)
	}
	segment.Number--
	return segment.String()
}

// TestFull: a failure to archive because the repository's volume is full is told apart from other
// failures.
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

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
