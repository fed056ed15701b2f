package wal

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason, name string
		want         Segment
		ok           bool
	}{
		"Segment":  {reason: "Three numbers of eight digits.", name: "0000000200000001000000FE", want: Segment{Timeline: 2, Number: 256 + 254}, ok: true},
		"Partial":  {reason: "What a timeline left unfinished is no segment.", name: "000000010000000000000005.partial"},
		"Backup":   {reason: "What marks a backup is no segment.", name: "000000010000000000000003.00000028.backup"},
		"History":  {reason: "A timeline's history is no segment.", name: "00000002.history"},
		"Too many": {reason: "There are 256 segments to a folder.", name: "000000010000000000000100"},
		"Small":    {reason: "PostgreSQL writes capitals.", name: "0000000100000000000000fe"},
		"Sign":     {reason: "A sign is no digit.", name: "+00000010000000000000003"},
		"Empty":    {reason: "No name is no segment."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Parse(tc.name)
			if ok != tc.ok || got != tc.want {
				t.Errorf("%s\nParse(%q): want %v, %t, got %v, %t", tc.reason, tc.name, tc.want, tc.ok, got, ok)
			}
			if ok && got.String() != tc.name {
				t.Errorf("%s\nString(): got %s", tc.reason, got)
			}
		})
	}
}

func TestStart(t *testing.T) {
	if got := (Segment{Timeline: 3, Number: 256 + 2}).Start(); got != "1/2000000" {
		t.Errorf("Start(): got %s", got)
	}
}

// history is that of timeline 3: the first timeline ended in the middle of segment 5, the second at
// the end of segment 8.
const history = "1\t0/5000148\tno recovery target specified\n\n2\t0/9000000\tno recovery target specified\n"

func TestLineage(t *testing.T) {
	l, err := NewLineage(3, history)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]uint32{4: 1, 5: 2, 8: 2, 9: 3, 20: 3}
	got := map[uint64]uint32{}
	for n := range want {
		got[n] = l.At(n).Timeline
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the segment in which a timeline begins is its own: -want, +got:\n%s", diff)
	}
	for _, bad := range []string{"1", "one 0/5", "1 5"} {
		if _, err := NewLineage(2, bad); !errors.Is(err, ErrHistory) {
			t.Errorf("NewLineage(%q): got %v", bad, err)
		}
	}
}

func TestMissing(t *testing.T) {
	l, err := NewLineage(3, history)
	if err != nil {
		t.Fatal(err)
	}
	seg := func(timeline uint32, n uint64) Segment { return Segment{Timeline: timeline, Number: n} }
	cases := map[string]struct {
		reason string
		have   []Segment
		want   []Range
	}{
		"Whole": {
			reason: "Each segment is there on the timeline that a restore reads it from.",
			have:   []Segment{seg(1, 4), seg(2, 5), seg(2, 6), seg(2, 7), seg(2, 8), seg(3, 9)},
		},
		"OtherTimeline": {
			reason: "The old timeline's copy of the segment in which the next one begins is not read.",
			have:   []Segment{seg(1, 4), seg(1, 5), seg(2, 6), seg(2, 7), seg(2, 8), seg(3, 9)},
			want:   []Range{{First: seg(2, 5), Last: seg(2, 5)}},
		},
		"Two": {
			reason: "What is missing in one piece is one range, also over timelines.",
			have:   []Segment{seg(2, 5), seg(2, 6), seg(2, 7)},
			want:   []Range{{First: seg(1, 4), Last: seg(1, 4)}, {First: seg(2, 8), Last: seg(3, 9)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := map[Segment]bool{}
			for _, s := range tc.have {
				have[s] = true
			}
			got := l.Missing(4, 10, func(s Segment) bool { return have[s] })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nMissing(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMissingAny: Missing returns exactly the segments that were removed from an archive.
func TestMissingAny(t *testing.T) {
	l, err := NewLineage(3, history)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(200) {
		draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the seed makes the draw repeatable
		gone := map[Segment]bool{}
		for n := range uint64(300) {
			if draw.IntN(4) == 0 {
				gone[l.At(n)] = true
			}
		}
		found := map[Segment]bool{}
		for _, r := range l.Missing(0, 300, func(s Segment) bool { return !gone[s] }) {
			for n := r.First.Number; n <= r.Last.Number; n++ {
				found[l.At(n)] = true
			}
		}
		if diff := cmp.Diff(gone, found); diff != "" {
			t.Fatalf("seed %d: -gone, +found:\n%s", seed, diff)
		}
	}
}

func TestArchived(t *testing.T) {
	const sum = "-2b1e4c0e1b3c7a2f3f0b7a8a3b6c1d2e3f405162.zst"
	cases := map[string]struct {
		reason, file string
		ok           bool
	}{
		"Folder":  {reason: "A file in its folder.", file: "0000000100000000/000000010000000000000005" + sum, ok: true},
		"Alone":   {reason: "A file by itself.", file: "000000010000000000000005" + sum, ok: true},
		"Partial": {reason: "What is not whole is none.", file: "000000010000000000000005.partial" + sum},
		"History": {reason: "Nor is a history.", file: "00000002.history"},
		"Backup":  {reason: "Nor is what marks a backup.", file: "000000010000000000000005.00000028.backup"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ok := Archived(tc.file); ok != tc.ok || ok && got != (Segment{Timeline: 1, Number: 5}) {
				t.Errorf("%s\nArchived(%q): got %v, %t", tc.reason, tc.file, got, ok)
			}
		})
	}
}

func TestFolders(t *testing.T) {
	l, err := NewLineage(3, history)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0000000100000000", "0000000200000000", "0000000300000000", "0000000300000001"}
	if diff := cmp.Diff(want, l.Folders(2, 300)); diff != "" {
		t.Errorf("Folders(): -want, +got:\n%s", diff)
	}
}

func TestLeftIn(t *testing.T) {
	l, err := NewLineage(3, history)
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[Segment]bool{
		{Timeline: 1, Number: 5}: true,
		{Timeline: 1, Number: 4}: false,
		{Timeline: 2, Number: 5}: false,
		{Timeline: 2, Number: 9}: true,
		{Timeline: 3, Number: 9}: false,
	} {
		if got := l.LeftIn(s); got != want {
			t.Errorf("LeftIn(%s): want %t, got %t", s, want, got)
		}
	}
}
