package archive

import (
	"slices"
	"testing"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// TestDone: although several segments are archived at once, PostgreSQL never takes one for archived
// that is not in the store. After the server has stopped, all are there.
func TestDone(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	var wrote []wal.Segment
	for range 12 {
		segment, _ := wal.Parse(s.write())
		wrote = append(wrote, segment)
		var done []string
		s.ask("SELECT coalesce(array_agg(substr(name, 1, 24)), '{}') FROM pg_ls_archive_statusdir() WHERE name ~ '^[0-9A-F]{24}\\.done$'", &done)
		there := s.inStore()
		for _, name := range done {
			if segment, _ := wal.Parse(name); !there[segment] {
				t.Errorf("PostgreSQL takes %s for archived, and the store does not have it", name)
			}
		}
	}
	s.stop()
	there := s.inStore()
	if i := slices.IndexFunc(wrote, func(w wal.Segment) bool { return !there[w] }); i >= 0 {
		t.Errorf("the server has stopped, and %s is not in the store", wrote[i])
	}
}

// inStore returns the segments that the repository contains.
func (s *server) inStore() map[wal.Segment]bool {
	s.t.Helper()
	tool, stanza := s.tool()
	archive, err := tool.Archive(s.t.Context(), stanza)
	s.must(err)
	there, err := archive.All(s.t.Context())
	s.must(err)
	return there
}
