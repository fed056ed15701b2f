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

// ErrNoArchive is what a stanza has that was never set up, or is lost.
var ErrNoArchive = errors.New("the repository has no archive")

// ArchiveInfo is the file that each archive has.
const ArchiveInfo = "archive.info"

// manyFolders are more than are listed one by one.
const manyFolders = 16

// Archive of a stanza's WAL.
type Archive struct {
	tool Tool

	// path in the repository, or "" before anything was archived.
	path string
}

// Archive of a stanza. One that is not there is an error: it is not empty.
func (t Tool) Archive(ctx context.Context, stanza string) (*Archive, error) {
	root := path.Join("archive", stanza)
	entries, err := t.list(ctx, root)
	if err != nil {
		return nil, err
	}
	newest, id := -1, ""
	for _, e := range entries {
		// An upgrade of the server begins another one: 17-1, 18-2.
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

// Segments that are whole in folders of the archive.
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

// All segments of the archive that are whole.
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

// Newest timeline that a restore from one of a timeline follows, as PostgreSQL
// finds it: the last one to which there is a history without one missing.
func (a *Archive) Newest(ctx context.Context, timeline uint32) (wal.Lineage, error) {
	if a.path == "" {
		return wal.NewLineage(timeline, "")
	}
	entries, err := a.tool.list(ctx, a.path)
	if err != nil {
		return wal.Lineage{}, err
	}
	history := func(t uint32) string { return fmt.Sprintf("%08X.history", t) }
	for slices.Contains(entries, history(timeline+1)) {
		timeline++
	}
	if !slices.Contains(entries, history(timeline)) {
		return wal.NewLineage(timeline, "")
	}
	out, err := a.tool.Run(ctx, "", "repo-get", path.Join(a.path, history(timeline)))
	if err != nil {
		return wal.Lineage{}, err
	}
	return wal.NewLineage(timeline, string(bytes.TrimSpace(out)))
}

// Gaps in the archive after a set began: what a restore of it does not get past.
func (t Tool) Gaps(ctx context.Context, set Set) ([]wal.Range, error) {
	first, ok := wal.Parse(set.WALStart)
	if !ok {
		return nil, fmt.Errorf("cannot read where the WAL of backup %s begins: %q", set.Label, set.WALStart)
	}
	a, err := t.Archive(ctx, set.Stanza)
	if err != nil {
		return nil, err
	}
	lineage, err := a.Newest(ctx, first.Timeline)
	if err != nil {
		return nil, err
	}
	there, err := a.All(ctx)
	if err != nil {
		return nil, err
	}
	end := first.Number
	for s := range there {
		if lineage.At(s.Number) == s {
			end = max(end, s.Number)
		}
	}
	return lineage.Missing(first.Number, end+1, func(s wal.Segment) bool { return there[s] }), nil
}
