package pgbackrest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// ErrNoArchive means that the archive of a stanza was never set up, or is lost.
var ErrNoArchive = errors.New("the repository has no archive")

// ArchiveInfo is a file that each archive has.
const ArchiveInfo = "archive.info"

// manyFolders is the number of folders above which the whole archive is listed at once.
const manyFolders = 16

// An Archive is where the WAL of a stanza is stored.
type Archive struct {
	tool Tool

	// path is the path in the repository, or "" before anything was archived.
	path string
}

// Archive returns the archive of a stanza. A missing one is an error: it does not count as empty.
func (t Tool) Archive(ctx context.Context, stanza string) (*Archive, error) {
	root := path.Join("archive", stanza)
	entries, err := t.list(ctx, root)
	if err != nil {
		return nil, err
	}
	newest, id := -1, ""
	for _, e := range entries {
		// An upgrade of the server begins a new folder: 17-1, 18-2.
		if _, number, ok := strings.Cut(e, "-"); ok {
			if n, err := strconv.Atoi(number); err == nil && n > newest {
				newest, id = n, e
			}
		}
	}
	switch {
	case !slices.Contains(entries, ArchiveInfo):
		return nil, fmt.Errorf("%w of cluster %s", ErrNoArchive, stanza)
	case id == "":
		return &Archive{tool: t}, nil
	}
	return &Archive{tool: t, path: path.Join(root, id)}, nil
}

func (t Tool) list(ctx context.Context, folder string, options ...string) ([]string, error) {
	out, err := t.Run(ctx, "", "repo-ls", append(options, folder)...)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}

// Segments returns the complete segments in folders of the archive, or all of the archive's if
// there are many folders.
func (a *Archive) Segments(ctx context.Context, folders []string) (map[wal.Segment]bool, error) {
	if len(folders) > manyFolders {
		return a.All(ctx)
	}
	there := map[wal.Segment]bool{}
	for _, f := range folders {
		if err := a.read(ctx, there, f); err != nil {
			return nil, err
		}
	}
	return there, nil
}

// All returns the complete segments of the archive.
func (a *Archive) All(ctx context.Context) (map[wal.Segment]bool, error) {
	there := map[wal.Segment]bool{}
	return there, a.read(ctx, there, "", "--recurse", "--sort=none")
}

func (a *Archive) read(ctx context.Context, into map[wal.Segment]bool, folder string, options ...string) error {
	if a.path == "" {
		return nil
	}
	files, err := a.tool.list(ctx, path.Join(a.path, folder), options...)
	for _, f := range files {
		if s, ok := wal.Archived(f); ok {
			into[s] = true
		}
	}
	return err
}

// Path returns the path of the archive in the repository, or "" before anything was archived.
func (a *Archive) Path() string { return a.path }

// Timelines returns the timelines with a history or WAL in the archive, in order.
func (a *Archive) Timelines(ctx context.Context) ([]uint32, error) {
	if a.path == "" {
		return nil, nil
	}
	entries, err := a.tool.list(ctx, a.path)
	if err != nil {
		return nil, err
	}
	var out []uint32
	for _, e := range entries {
		if t, ok := wal.TimelineOf(e); ok {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Newest returns the newest timeline that continues from a segment: the last one with the segment
// in its past. A server that was promoted with older data begins a timeline without it.
func (a *Archive) Newest(ctx context.Context, from wal.Segment) (wal.Lineage, error) {
	timelines, err := a.Timelines(ctx)
	if err != nil {
		return wal.Lineage{}, err
	}
	for _, t := range slices.Backward(timelines) {
		if t <= from.Timeline {
			break
		}
		l, err := a.lineage(ctx, t)
		if errors.Is(err, errNoHistory) {
			continue
		}
		if err != nil || l.Reads(from) {
			return l, err
		}
	}
	l, err := a.lineage(ctx, from.Timeline)
	if errors.Is(err, errNoHistory) {
		return wal.NewLineage(from.Timeline, "")
	}
	return l, err
}

// errNoHistory means that the history of a timeline is not in the archive.
var errNoHistory = errors.New("the archive has no history of the timeline")

// lineage returns the lineage of a timeline, by its history in the archive.
func (a *Archive) lineage(ctx context.Context, timeline uint32) (wal.Lineage, error) {
	if a.path == "" {
		return wal.Lineage{}, errNoHistory
	}
	out, err := a.tool.Run(ctx, "", "repo-get", path.Join(a.path, wal.History(timeline)))
	switch failure := (&Error{}); {
	case errors.As(err, &failure) && failure.Code == codeMissing:
		return wal.Lineage{}, errNoHistory
	case err != nil:
		return wal.Lineage{}, err
	}
	return wal.NewLineage(timeline, string(bytes.TrimSpace(out)))
}

// ErrBranch means that no backup leads to what a database wrote last.
var ErrBranch = errors.New("no backup leads to the last timeline")

// Latest returns the newest set of a stanza from which a restore reaches what was written last,
// which is on the timeline that was begun last. A newer set may be on a branch that was
// abandoned.
func (t Tool) Latest(ctx context.Context, stanza string, sets []Set) (Set, error) {
	a, err := t.Archive(ctx, stanza)
	if err != nil {
		return Set{}, err
	}
	timelines, err := a.Timelines(ctx)
	if err != nil {
		return Set{}, err
	}
	sets = Of(stanza, sets)
	if len(timelines) == 0 || len(sets) == 0 {
		return Set{}, ErrNone
	}
	last := timelines[len(timelines)-1]
	lineage, err := a.lineage(ctx, last)
	if errors.Is(err, errNoHistory) {
		lineage, err = wal.NewLineage(last, "")
	}
	if err != nil {
		return Set{}, err
	}
	on := On(lineage, sets)
	if len(on) == 0 {
		return Set{}, fmt.Errorf("%w, %d: backup %s is of another branch", ErrBranch, last, sets[len(sets)-1].Label)
	}
	return on[len(on)-1], nil
}

// A Branch is the newest timeline of an archive that a set can be restored to, with the timelines
// that it came from, and the WAL that exists of them.
type Branch struct {
	wal.Lineage

	first, end uint64
	there      map[wal.Segment]bool

	// from is the timeline on which the set ends.
	from uint32
}

// Branch returns the branch that continues from a set.
func (t Tool) Branch(ctx context.Context, set Set) (*Branch, error) {
	first, ok := wal.Parse(set.WALStart)
	if !ok {
		return nil, fmt.Errorf("cannot read where the WAL of backup %s begins: %q", set.Label, set.WALStart)
	}
	from, ok := wal.Parse(set.WALStop)
	if !ok {
		from = first
	}
	a, err := t.Archive(ctx, set.Stanza)
	if err != nil {
		return nil, err
	}
	b := &Branch{first: first.Number, end: first.Number, from: from.Timeline}
	if b.Lineage, err = a.Newest(ctx, from); err != nil {
		return nil, err
	}
	if b.there, err = a.All(ctx); err != nil {
		return nil, err
	}
	for s := range b.there {
		if b.Reads(s) {
			b.end = max(b.end, s.Number)
		}
	}
	return b, nil
}

// From returns the timeline on which the set ends.
func (b *Branch) From() uint32 { return b.from }

// Last returns the last segment of WAL on the branch.
func (b *Branch) Last() wal.Segment { return b.At(b.end) }

// Gaps returns the gaps in the WAL of the branch, beyond which nothing can be restored.
func (b *Branch) Gaps() []wal.Range {
	return b.Missing(b.first, b.end+1, func(s wal.Segment) bool { return b.there[s] })
}
