package archive

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// TestHurried: a server whose pod is killed in a moment stops without waiting for the
// archive, not even for the tries that PostgreSQL makes of a command that fails. What it
// did not archive is archived once it runs again, and so long as it is not killed.
func TestHurried(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.write()
	// What pgBackRest has begun in the background it may go on with.
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

	// What is older than the pod would have lived counts no more.
	past := time.Now().Add(-2 * hurriedFor)
	s.must(os.Chtimes(s.hurriedFile(), past, past))
	s.start()
	s.write()
	s.stop()
	if !s.inStore()[segment] {
		t.Errorf("segment %v is not in the archive", segment)
	}
}
