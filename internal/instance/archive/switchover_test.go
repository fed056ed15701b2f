package archive

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// TestSwitched: a stopping primary begins a new segment and archives the one before, and is killed
// before its standby has received all of it. The standby's copy has other bytes after the last
// record, where nothing is read. It is promoted, and continues to archive.
func TestSwitched(t *testing.T) {
	p := newPlace(t)
	old := p.primary("old")
	link := old.link()
	next := link.standby("next")
	// PostgreSQL recycles old segments, which are full of records.
	for range 3 {
		old.exec("SELECT pg_logical_emit_message(true, 'test', repeat('old ', 5000000))")
		old.exec("CHECKPOINT")
		next.follow(old)
		next.exec("CHECKPOINT")
	}
	next.keep()
	old.archived()
	old.backUp()
	next.follow(old)

	link.cut(1 << 20)
	switched := old.write()
	end, _ := wal.Parse(switched)
	end.Number++
	next.eventually("the standby has read all records of the segment", func() bool {
		var yes bool
		next.ask("SELECT pg_last_wal_replay_lsn() >= '"+end.Start()+"'", &yes)
		return yes
	})
	old.archived()
	old.run("pg_ctl", "-D", old.DataDir(), "-w", "-m", "immediate", "stop")
	if bytes.Equal(old.segment(switched), next.segment(switched)) {
		t.Fatal("the standby has received all of the segment")
	}
	next.promote()
	if _, err := Complete(t.Context(), next.Config, next.current(), testLog{t}); err != nil {
		t.Fatal(err)
	}
	// PostgreSQL archives remaining segments before it removes them.
	next.write()
	next.archived()
	db := postgres.Server{Socket: next.Socket, Port: 5432}
	current, _ := wal.Parse(next.current())
	p.must(db.Release(t.Context(), instance.ArchiveSlot, current.Start()))
	next.exec("CHECKPOINT")
	next.write()
	next.eventually("all is archived, or cannot be", func() bool { return next.waiting() == 0 || next.Failure() != "" })
	if failure := next.Failure(); failure != "" {
		t.Fatalf("the server that leads now does not archive: %s", failure)
	}
	if got := next.gaps(); got != "[]" {
		t.Errorf("the archive has gaps: %s", got)
	}
}

// segment returns the content of a WAL segment of the server.
func (s *server) segment(name string) []byte {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.DataDir(), "pg_wal", name))
	s.must(err)
	return content
}

// follow waits until the standby has replayed what the primary has written so far.
func (s *server) follow(primary *server) {
	s.t.Helper()
	var at string
	primary.ask("SELECT pg_current_wal_flush_lsn()::text", &at)
	s.eventually("the standby is at "+at, func() bool {
		var yes bool
		s.ask("SELECT pg_last_wal_replay_lsn() >= '"+at+"'", &yes)
		return yes
	})
}

// link is a proxy through which standbys reach a server, until it is cut.
type link struct {
	*server

	// left is the number of bytes that still reach the standbys after a cut.
	mu    sync.Mutex
	left  int64
	isCut bool
}

func (s *server) link() *link {
	s.t.Helper()
	l := &link{server: s}
	s.must(os.MkdirAll(l.socket(), 0o700))
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "unix", filepath.Join(l.socket(), ".s.PGSQL.5432"))
	s.must(err)
	s.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(c)
		}
	}()
	return l
}

func (l *link) socket() string { return l.path(l.name + "-l") }

// standby starts a standby that follows the server over the link.
func (l *link) standby(name string) *server { return l.standbyBy(name, l.socket()) }

// serve forwards one connection.
func (l *link) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	to, err := (&net.Dialer{}).Dial("unix", filepath.Join(l.Socket, ".s.PGSQL.5432"))
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(to, c) }()
	part := make([]byte, 8<<10)
	for {
		n, err := to.Read(part)
		if err != nil || !l.pass(n) {
			return
		}
		if _, err := c.Write(part[:n]); err != nil {
			return
		}
	}
}

// pass reports whether n more bytes get through.
func (l *link) pass(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left -= int64(n)
	return !l.isCut || l.left >= 0
}

// cut cuts the link after that many more bytes.
func (l *link) cut(after int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut, l.left = true, after
}
