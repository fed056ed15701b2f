package archive

import (
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// TestSecondRestore: a cluster that is restored a second time under the same name archives, though
// its segments have the names of those of the first restore.
func TestSecondRestore(t *testing.T) {
	p := newPlace(t)
	source := p.primary("source")
	source.backUp()
	source.write()
	source.archived()

	for _, name := range []string{"first", "second"} {
		s := p.server(name)
		s.restore(source)
		p.must(takePlace(s.DataDir()))
		// Both belong to a claim of the same name, and so use the same repository.
		t.Setenv("PGBACKREST_REPO1_PATH", p.path("other"))
		s.start()
		p.must(s.Create(t.Context(), testLog{t}))
		s.write()
		s.archived()
		s.backUp()
		standby := s.standby(name + "-standby")
		if of, err := standby.Stanza(); err != nil || of != s.stanza() {
			t.Errorf("%s archives to %s, %v, and its primary to %s", standby.name, of, err, s.stanza())
		}
		standby.stop()
		s.stop()
		t.Setenv("PGBACKREST_REPO1_PATH", p.path("store"))
	}
}

// TestTwin: two clusters that are copies of one cluster archive to one place. The second one
// reports that.
func TestTwin(t *testing.T) {
	p := newPlace(t)
	source := p.primary("source")
	source.backUp()
	twin := p.server("twin")
	twin.restore(source)
	other := p.server("other")
	other.restore(source)
	twin.start()
	twin.write()
	twin.archived()
	other.start()
	other.write()
	p.eventually("the other cluster says why it does not archive", func() bool {
		return strings.Contains(other.Failure(), "another cluster with this one's system identifier archives to the same place")
	})
	t.Log(other.Failure())
}

// TestTwinAhead: a copy that was promoted, and the cluster that it is a copy of, archive to one place
// under different names. The archive has a timeline then that the cluster does not have.
func TestTwinAhead(t *testing.T) {
	p := newPlace(t)
	source := p.primary("source")
	source.backUp()
	source.write()
	source.archived()
	last := func() uint32 {
		t.Helper()
		n, err := source.LastTimeline(t.Context(), testLog{t})
		p.must(err)
		return n
	}
	if n := last(); n != 1 {
		t.Errorf("the archive ends with timeline %d, and its cluster is on 1", n)
	}
	twin := p.server("twin")
	twin.restore(source)
	twin.start()
	twin.write()
	twin.archived()
	source.write()
	source.archived()
	if n := last(); n != 2 || source.Failure() != "" {
		t.Errorf("want timeline 2 in the archive, and no failure, got %d, %q", n, source.Failure())
	}
}

// restore restores the newest backup of a source and all that it has archived.
func (s *server) restore(source *server) {
	s.t.Helper()
	tool, stanza := source.tool()
	sets, err := tool.Sets(s.t.Context())
	s.must(err)
	set, err := pgbackrest.Choose(sets, stanza, time.Time{}, time.Now())
	s.must(err)
	s.restoreSet(tool, set)
}

// restoreSet restores a backup and all that was archived on its branch.
func (s *server) restoreSet(tool pgbackrest.Tool, set pgbackrest.Set) {
	s.t.Helper()
	tool.Env = append(tool.Env, "PGBACKREST_REPO1_PATH="+s.path("store"))
	r := recovery.Recovery{Tool: tool, Set: set, DataDir: s.DataDir(), WorkDir: s.path("w"), Processes: 1}
	s.must(r.Run(s.t.Context(), nil))
}

func (s *server) stanza() string {
	s.t.Helper()
	stanza, err := s.Stanza()
	s.must(err)
	return stanza
}
