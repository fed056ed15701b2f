package archive

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// TestHurried: a server whose pod is about to be killed stops without waiting for the archive, and
// without PostgreSQL's retries of a failing archive command. If it is not killed after all, or runs
// again, it archives what is missing.
func TestHurried(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.write()
	// Wait for what pgBackRest has begun in the background, since it may continue with that.
	s.archived()
	s.exec("CREATE TABLE hurried (n int)")
	segment, _ := wal.Parse(s.current())
	s.must(s.Hurry())
	s.stop()
	log, err := os.ReadFile(p.path("one-log"))
	s.must(err)
	if tries := strings.Count(string(log), "archive command failed"); tries != 1 {
		t.Errorf("the archive command was tried %d times, want once:\n%s", tries, log)
	}

	// A mark older than the pod could have lived is ignored.
	past := time.Now().Add(-2 * hurriedFor)
	s.must(os.Chtimes(s.hurriedFile(), past, past))
	s.start()
	s.write()
	s.stop()
	if !s.inStore()[segment] {
		t.Errorf("segment %v is not in the archive", segment)
	}
}

// TestHurriedMeanwhile: an archive command that waits for a store without an answer is ended, since
// the server waits for the command. Once a pod's object is gone, the network may drop its traffic.
func TestHurriedMeanwhile(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	segment := s.write()
	s.archived()
	s.stop()
	s.must(os.WriteFile(filepath.Join(s.DataDir(), "pg_wal", "archive_status", segment+".ready"), nil, 0o600))

	store, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	s.must(err)
	t.Cleanup(func() { _ = store.Close() })
	host, port, err := net.SplitHostPort(store.Addr().String())
	s.must(err)
	for name, value := range map[string]string{
		"TYPE": "s3", "PATH": "/", "STORAGE_HOST": host, "STORAGE_PORT": port,
		"S3_BUCKET": "b", "S3_ENDPOINT": "store.example.com", "S3_REGION": "r", "S3_KEY": "k", "S3_KEY_SECRET": "s",
	} {
		t.Setenv("PGBACKREST_REPO1_"+name, value)
	}
	ended := make(chan error, 1)
	go func() { ended <- Push(t.Context(), s.Config, "pg_wal/"+segment, os.Stderr) }()
	waits := make(chan net.Conn, 1)
	go func() {
		if c, err := store.Accept(); err == nil {
			waits <- c
		}
	}()
	select {
	case c := <-waits:
		t.Cleanup(func() { _ = c.Close() })
	case err := <-ended:
		t.Fatalf("it does not wait for the store: %v", err)
	}

	s.must(s.Hurry())
	select {
	case err := <-ended:
		if !errors.Is(err, ErrHurried) {
			t.Errorf("want %v, got %v", ErrHurried, err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it still waits for the store")
	}
	if f := s.Failure(); f != "" {
		t.Errorf("that is no failure of the store's, got %q", f)
	}
}
