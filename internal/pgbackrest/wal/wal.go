// Package wal parses the names of WAL segments, and computes which of them a restore reads and an
// archive lacks. It reads no files.
package wal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Size is the size of a segment, PostgreSQL's default.
const Size = 16 << 20

// perFolder is how many segments share the first sixteen digits of their names.
const perFolder = 1 << 32 / Size

// A Segment is a segment of WAL.
type Segment struct {
	Timeline uint32

	// Number counts from the beginning of the WAL, on all timelines.
	Number uint64
}

// Parse parses the name of a complete segment. The last, incomplete segment of a timeline
// (.partial) is none, nor are the files of a backup (.backup) or of a timeline (.history).
func Parse(name string) (Segment, bool) {
	const digits = 8
	if len(name) != 3*digits || strings.ToUpper(name) != name {
		return Segment{}, false
	}
	var parts [3]uint64
	for i := range parts {
		n, err := strconv.ParseUint(name[i*digits:(i+1)*digits], 16, 32)
		if err != nil {
			return Segment{}, false
		}
		parts[i] = n
	}
	if parts[2] >= perFolder {
		return Segment{}, false
	}
	return Segment{Timeline: uint32(parts[0]), Number: parts[1]*perFolder + parts[2]}, true //nolint:gosec // parsed as 32 bits
}

// String returns the name of the segment.
func (s Segment) String() string {
	return fmt.Sprintf("%08X%08X%08X", s.Timeline, s.Number/perFolder, s.Number%perFolder)
}

// Folder returns the folder of an archive that contains the segment: the first sixteen digits of
// its name.
func (s Segment) Folder() string { return s.String()[:16] }

// Start returns the position at which the segment begins, as PostgreSQL writes it.
func (s Segment) Start() string {
	at := s.Number * Size
	return fmt.Sprintf("%X/%X", at>>32, at&(1<<32-1))
}

// historySuffix is the end of the name of a timeline's history.
const historySuffix = ".history"

// History returns the name of a timeline's history.
func History(timeline uint32) string { return fmt.Sprintf("%08X%s", timeline, historySuffix) }

// TimelineOf returns the timeline of an entry in an archive's folder: the history of a timeline,
// or a folder of its segments.
func TimelineOf(entry string) (uint32, bool) {
	const digits = 8
	name, isHistory := strings.CutSuffix(entry, historySuffix)
	if !isHistory && len(name) != 2*digits || isHistory && len(name) != digits {
		return 0, false
	}
	if _, err := strconv.ParseUint(name[digits*(len(name)/digits-1):], 16, 32); err != nil {
		return 0, false
	}
	t, err := strconv.ParseUint(name[:digits], 16, 32)
	return uint32(t), err == nil && t > 0
}

// A Lineage is a timeline with the timelines that it came from.
type Lineage struct {
	timeline uint32

	// ends are those of the earlier timelines, oldest first.
	ends []end
}

// An end is the end of a timeline: the segment in which the next one begins. The next timeline has
// that segment too, with a copy of what was written before.
type end struct {
	timeline uint32
	number   uint64
}

// ErrHistory means that the history of a timeline cannot be read.
var ErrHistory = errors.New("cannot read the history of a timeline")

// NewLineage returns the lineage of a timeline, by the content of its history file. The first
// timeline has none.
func NewLineage(timeline uint32, history string) (Lineage, error) {
	l := Lineage{timeline: timeline}
	for line := range strings.Lines(history) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 {
			return Lineage{}, fmt.Errorf("%w %d: %q", ErrHistory, timeline, line)
		}
		id, err := strconv.ParseUint(fields[0], 10, 32)
		high, low, ok := strings.Cut(fields[1], "/")
		h, highErr := strconv.ParseUint(high, 16, 32)
		lo, lowErr := strconv.ParseUint(low, 16, 32)
		if !ok || errors.Join(err, highErr, lowErr) != nil {
			return Lineage{}, fmt.Errorf("%w %d: %q", ErrHistory, timeline, line)
		}
		l.ends = append(l.ends, end{timeline: uint32(id), number: (h<<32 | lo) / Size})
	}
	return l, nil
}

// Timeline returns the last timeline of the lineage.
func (l Lineage) Timeline() uint32 { return l.timeline }

// Reads reports whether a restore along the lineage reads a segment.
func (l Lineage) Reads(s Segment) bool { return l.At(s.Number) == s }

// At returns the segment of a number that a restore along the lineage reads.
func (l Lineage) At(number uint64) Segment {
	for _, e := range l.ends {
		if number < e.number {
			return Segment{Timeline: e.timeline, Number: number}
		}
	}
	return Segment{Timeline: l.timeline, Number: number}
}

// LeftIn reports whether a timeline of the lineage ended in this segment of its own. The next
// timeline has a segment that begins with the same records, and a restore reads that one.
func (l Lineage) LeftIn(s Segment) bool {
	return slices.Contains(l.ends, end{timeline: s.Timeline, number: s.Number})
}

// A Range is a range of segments, both ends included.
type Range struct{ First, Last Segment }

// String returns the names of the segments.
func (r Range) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + " to " + r.Last.String()
}

// Missing returns the segments with numbers in [from, to) that do not exist.
func (l Lineage) Missing(from, to uint64, there func(Segment) bool) []Range {
	var out []Range
	for n := from; n < to; n++ {
		s := l.At(n)
		switch last := len(out) - 1; {
		case there(s):
		case last >= 0 && out[last].Last.Number+1 == n:
			out[last].Last = s
		default:
			out = append(out, Range{First: s, Last: s})
		}
	}
	return out
}

// Folders returns the folders of an archive for the segments with numbers in [from, to).
func (l Lineage) Folders(from, to uint64) []string {
	var out []string
	for n := from; n < to; n++ {
		if f := l.At(n).Folder(); len(out) == 0 || out[len(out)-1] != f {
			out = append(out, f)
		}
	}
	return out
}

// Archived returns the segment of a file in pgBackRest's archive, which adds a checksum to the
// name.
func Archived(file string) (Segment, bool) {
	name, _, ok := strings.Cut(file[strings.LastIndexByte(file, '/')+1:], "-")
	if !ok {
		return Segment{}, false
	}
	return Parse(name)
}
