package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// ErrSegment is what no name of a segment is.
var ErrSegment = errors.New("cannot read the name of a segment")

// Comparison of the archive with what was written.
type Comparison struct {
	// BackedUp is false while there is no backup, so that nothing can be restored.
	BackedUp bool

	// Compared is the WAL since the newest backup began, and before that what is on
	// the volume, up to the segment that is being written.
	Compared wal.Range

	// Lost is neither in the archive nor on the volume: nothing after it can be
	// restored until there is a backup that is newer. Without a backup it is empty.
	Lost []wal.Range

	// Sets are the backups, oldest first.
	Sets []pgbackrest.Set
}

// Complete compares the archive with what was written since the newest backup
// began, up to the segment that is being written, and with what is on the volume
// from before, as far as an older backup needs it. PostgreSQL archives again what
// is on the volume and not in the archive: a standby takes what it has received
// for archived, and goes on thinking so once it is promoted.
func Complete(ctx context.Context, c Config, current string, log io.Writer) (*Comparison, error) {
	at, err := c.at(ctx, current, log)
	if err != nil {
		return nil, err
	}
	sets, lineage, end := at.sets, at.lineage, at.segment
	here, err := c.segments()
	if err != nil {
		return nil, err
	}
	from, backedUp := begin(sets, oldest(lineage, here, end.Number))
	archive, err := at.tool.Archive(ctx, at.stanza)
	if err != nil {
		return nil, err
	}
	there, err := archive.Segments(ctx, lineage.Folders(from, end.Number))
	if err != nil {
		return nil, err
	}
	for _, r := range lineage.Missing(from, end.Number, func(s wal.Segment) bool { return there[s] || !here[s] }) {
		for n := r.First.Number; n <= r.Last.Number; n++ {
			if err := c.again(lineage.At(n)); err != nil {
				return nil, err
			}
		}
	}
	// A set may begin in the segment that is being written.
	last := end.Number - 1
	out := &Comparison{BackedUp: backedUp, Sets: sets, Compared: wal.Range{First: lineage.At(min(from, last)), Last: lineage.At(last)}}
	if backedUp {
		out.Lost = lineage.Missing(from, end.Number, func(s wal.Segment) bool { return there[s] || here[s] })
	}
	return out, nil
}

// Sets of this cluster's backups from which a restore gets to a segment, oldest first.
func (c Config) Sets(ctx context.Context, current string, log io.Writer) ([]pgbackrest.Set, error) {
	at, err := c.at(ctx, current, log)
	return at.sets, err
}

// moment of a cluster: a segment, the timelines that lead to it, and the backups from which a
// restore gets there.
type moment struct {
	segment wal.Segment
	lineage wal.Lineage
	stanza  string
	tool    pgbackrest.Tool
	sets    []pgbackrest.Set
}

func (c Config) at(ctx context.Context, current string, log io.Writer) (m moment, err error) {
	var ok bool
	if m.segment, ok = wal.Parse(current); !ok {
		return m, fmt.Errorf("%w: %q", ErrSegment, current)
	}
	if m.lineage, err = c.lineage(m.segment.Timeline); err != nil {
		return m, err
	}
	if m.stanza, err = c.Stanza(); err != nil {
		return m, err
	}
	if m.tool, err = c.Tool(log); err != nil {
		return m, err
	}
	sets, err := m.tool.Sets(ctx)
	m.sets = pgbackrest.On(m.lineage, pgbackrest.Of(m.stanza, sets))
	return m, err
}

// begin of what is compared, and whether there is a set: what is on the volume from
// its oldest segment on, or from the newest set on if that is older. What is older
// than all sets restores nothing, and neither does anything before the first set.
func begin(sets []pgbackrest.Set, oldest uint64) (uint64, bool) {
	var starts []uint64
	for _, set := range sets {
		if s, ok := wal.Parse(set.WALStart); ok {
			starts = append(starts, s.Number)
		}
	}
	if len(starts) == 0 {
		return oldest, false
	}
	return min(starts[len(starts)-1], max(oldest, slices.Min(starts))), true
}

// oldest segment on the volume that a restore along the lineage reads.
func oldest(lineage wal.Lineage, here map[wal.Segment]bool, end uint64) uint64 {
	for s := range here {
		if lineage.At(s.Number) == s {
			end = min(end, s.Number)
		}
	}
	return end
}

func (c Config) walDir() string { return filepath.Join(c.DataDir(), "pg_wal") }

// lineage of a timeline, by its history.
func (c Config) lineage(timeline uint32) (wal.Lineage, error) {
	if timeline == 1 {
		return wal.NewLineage(timeline, "")
	}
	history, err := os.ReadFile(filepath.Join(c.walDir(), fmt.Sprintf("%08X.history", timeline)))
	if err != nil {
		return wal.Lineage{}, fmt.Errorf("cannot read the history of the timeline: %w", err)
	}
	return wal.NewLineage(timeline, string(history))
}

// segments on the volume.
func (c Config) segments() (map[wal.Segment]bool, error) {
	entries, err := os.ReadDir(c.walDir())
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of WAL: %w", err)
	}
	here := map[wal.Segment]bool{}
	for _, e := range entries {
		if s, ok := wal.Parse(e.Name()); ok {
			here[s] = true
		}
	}
	return here, nil
}

// again has PostgreSQL archive a segment, which looks for such files.
func (c Config) again(s wal.Segment) error {
	status := filepath.Join(c.walDir(), "archive_status", s.String())
	err := os.Rename(status+".done", status+".ready")
	if errors.Is(err, fs.ErrNotExist) {
		// It waits already, or PostgreSQL knows nothing of it.
		err = os.WriteFile(status+".ready", nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot have segment %s archived again: %w", s, err)
	}
	return nil
}
