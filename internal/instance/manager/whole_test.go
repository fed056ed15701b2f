package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

func TestWithLost(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	known := instance.Gap{First: "000000010000000000000003", Last: "000000010000000000000004", To: &at}
	segment := func(n uint64) wal.Segment { return wal.Segment{Timeline: 1, Number: n} }
	got := withLost([]instance.Gap{known}, []wal.Range{{First: segment(3), Last: segment(4)}, {First: segment(7), Last: segment(7)}}, &at)
	want := []instance.Gap{known, {First: "000000010000000000000007", Last: "000000010000000000000007", From: &at}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a gap that is known is not another one\nwithLost(): -want, +got:\n%s", diff)
	}
}

func TestWithSets(t *testing.T) {
	first, second := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), time.Date(2026, 1, 3, 3, 4, 0, 0, time.UTC)
	before := pgbackrest.Set{WALStart: "000000010000000000000002", Stop: first}
	after := pgbackrest.Set{WALStart: "000000020000000000000005", Stop: second}
	open := instance.Gap{First: "000000010000000000000003", Last: "000000010000000000000004"}
	ended := open
	ended.To = &second
	cases := map[string]struct {
		reason string
		gap    instance.Gap
		sets   []pgbackrest.Set
		want   []instance.Gap
	}{
		"Open":    {reason: "A backup from before it does not end it.", gap: open, sets: []pgbackrest.Set{before}, want: []instance.Gap{open}},
		"Within":  {reason: "Nor does one that begins in it.", gap: open, sets: []pgbackrest.Set{before, {WALStart: "000000010000000000000004", Stop: second}}, want: []instance.Gap{open}},
		"Ended":   {reason: "One that begins after it does.", gap: open, sets: []pgbackrest.Set{before, after}, want: []instance.Gap{ended}},
		"Later":   {reason: "A later one changes nothing.", gap: ended, sets: []pgbackrest.Set{before, after, {WALStart: "000000020000000000000009", Stop: second.Add(time.Hour)}}, want: []instance.Gap{ended}},
		"Expired": {reason: "Without a backup from before it there is nothing to restore.", gap: ended, sets: []pgbackrest.Set{after}},
		"None":    {reason: "Without a backup at all nothing ends it.", gap: open, want: []instance.Gap{open}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withSets([]instance.Gap{tc.gap}, tc.sets)); diff != "" {
				t.Errorf("%s\nwithSets(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	cases := map[string]struct {
		reason string
		stats  postgres.Archiver
		want   string
	}{
		"All":     {reason: "While nothing waits only the segment that is written is kept.", stats: postgres.Archiver{Current: "000000020000000000000009"}, want: "0/9000000"},
		"Waiting": {reason: "What waits is kept.", stats: postgres.Archiver{Current: "000000020000000000000009", First: "0000000000000003", Waiting: 2}, want: "0/3000000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := keep(tc.stats)
			if !ok || got.Start() != tc.want {
				t.Errorf("%s\nkeep(): want %s, got %s, %t", tc.reason, tc.want, got.Start(), ok)
			}
		})
	}
	if _, ok := keep(postgres.Archiver{}); ok {
		t.Error("keep() of a server that said nothing: got a segment")
	}
}
