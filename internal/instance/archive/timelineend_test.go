package archive

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// TestLeft: a new primary archives its version of the segment in which the previous timeline ended,
// though the archive has another one of that name. Any other segment that differs is still refused.
func TestLeft(t *testing.T) {
	p := newPlace(t)
	old := p.primary("old")
	next := old.link().standby("next")
	next.keep()
	whole := old.write()
	old.archived()
	next.follow(old)
	// The standby leads from the middle of a segment on, and the old primary fills that segment.
	next.promote()
	left := old.write()
	old.archived()
	next.exec("CHECKPOINT")

	cut := func(name string) string {
		content := old.segment(name)
		// Only the header of its first page has arrived.
		clear(content[40:])
		file := filepath.Join(next.DataDir(), "pg_wal", name)
		p.must(os.WriteFile(file, content, 0o600))
		return file
	}
	if s, ok := wal.Parse(left); !ok || s.Timeline != 1 {
		t.Fatalf("the old primary wrote %q", left)
	}
	if err := push(t.Context(), next.Config, cut(left), testLog{t}, "--no-archive-async"); err != nil {
		t.Errorf("a segment that no restore reads stops archiving: %v", err)
	}
	if err := push(t.Context(), next.Config, cut(whole), testLog{t}, "--no-archive-async"); err == nil {
		t.Error("a segment that restores read differs from the archive's, and there is no error")
	}
}
