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

// ErrSegment is the error for text that is not the name of a segment.
var ErrSegment = errors.New("cannot read the name of a segment")

// Comparison is the result of comparing the archive with the WAL that was written.
type Comparison struct {
	// BackedUp is false while there is no backup, so that nothing can be restored.
	BackedUp bool

	// Compared is the range of WAL that was compared: what was written since the newest backup
	// began, and before that what is on the volume, without the segment that is being written.
	Compared wal.Range

	// Lost is the WAL that is neither in the archive nor on the volume: no time after it can
	// be restored until there is a newer backup. Without a backup it is empty.
	Lost []wal.Range

	// Sets are the backups, oldest first.
	Sets []pgbackrest.Set
}

// Complete compares the archive with the WAL that was written since the newest backup began,
// up to the segment that is being written, and with what is on the volume from before, as far
// as an older backup needs it. It has PostgreSQL archive again what is on the volume and not
// in the archive: a standby takes WAL that it has received for archived, also after its
// promotion.
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
	spool, err := c.spool()
	if err != nil {
		return nil, err
	}
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
			if err := forgetPushed(spool, at.stanza, lineage.At(n)); err != nil {
				return nil, err
			}
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

// Sets returns this cluster's backups from which a restore reaches a segment, oldest first.
func (c Config) Sets(ctx context.Context, current string, log io.Writer) ([]pgbackrest.Set, error) {
	at, err := c.at(ctx, current, log)
	return at.sets, err
}

// moment is a segment of a cluster's WAL, with the timelines that lead to it and the backups
// from which a restore reaches it.
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

// begin returns the number of the segment from which the archive is compared, and whether
// there is a set. It is the oldest segment on the volume, or the beginning of the newest set
// if that is older, but not before the first set: WAL from before it restores nothing.
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

// oldest returns the number of the oldest segment on the volume that a restore along the
// lineage reads, or end if there is none.
func oldest(lineage wal.Lineage, here map[wal.Segment]bool, end uint64) uint64 {
	for s := range here {
		if lineage.At(s.Number) == s {
			end = min(end, s.Number)
		}
	}
	return end
}

func (c Config) walDir() string { return filepath.Join(c.DataDir(), "pg_wal") }

// lineage returns the lineage of a timeline, read from its history file.
func (c Config) lineage(timeline uint32) (wal.Lineage, error) {
	if timeline == 1 {
		return wal.NewLineage(timeline, "")
	}
	history, err := os.ReadFile(filepath.Join(c.walDir(), wal.History(timeline)))
	if err != nil {
		return wal.Lineage{}, fmt.Errorf("cannot read the history of the timeline: %w", err)
	}
	return wal.NewLineage(timeline, string(history))
}

// segments returns the segments on the volume.
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

// again has PostgreSQL archive a segment, by the .ready file that its archiver looks for.
func (c Config) again(s wal.Segment) error {
	status := filepath.Join(c.walDir(), "archive_status", s.String())
	err := os.Rename(status+".done", status+".ready")
	if errors.Is(err, fs.ErrNotExist) {
		// The segment is waiting already, or PostgreSQL has no status file for it.
		err = os.WriteFile(status+".ready", nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot have segment %s archived again: %w", s, err)
	}
	return nil
}
