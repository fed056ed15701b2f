package manager

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/exchange"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

func TestWithLost(t *testing.T) {
	at, before := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), time.Date(2026, 1, 1, 3, 4, 0, 0, time.UTC)
	lost := func(first, last uint64) wal.Range {
		return wal.Range{First: wal.Segment{Timeline: 1, Number: first}, Last: wal.Segment{Timeline: 1, Number: last}}
	}
	gap := func(r wal.Range, from, to *time.Time) instance.Gap {
		return instance.Gap{First: r.First.String(), Last: r.Last.String(), From: from, To: to}
	}
	in := func(n uint64) *beat { return &beat{segment: lost(n, n).First.String(), at: at} }
	open, ended := gap(lost(3, 5), &before, nil), gap(lost(3, 5), &before, &at)
	cases := map[string]struct {
		reason string
		gaps   []instance.Gap
		lost   []wal.Range
		from   uint64
		beat   *beat
		want   []instance.Gap
	}{
		"New":     {reason: "What is lost is a gap.", gaps: []instance.Gap{ended}, lost: []wal.Range{lost(7, 7)}, beat: in(6), want: []instance.Gap{ended, gap(lost(7, 7), &at, nil)}},
		"Known":   {reason: "One that is known stays what it was.", gaps: []instance.Gap{open}, lost: []wal.Range{lost(3, 5)}, beat: in(2), want: []instance.Gap{open}},
		"Partly":  {reason: "One that is filled in part stays as well: its backup is on its way.", gaps: []instance.Gap{open}, lost: []wal.Range{lost(3, 3), lost(5, 5)}, beat: in(2), want: []instance.Gap{open}},
		"Filled":  {reason: "One that a standby has filled is none.", gaps: []instance.Gap{open, ended}, want: []instance.Gap{ended}},
		"Before":  {reason: "One from before what was compared is not known to be filled.", gaps: []instance.Gap{open}, from: 6, want: []instance.Gap{open}},
		"Within":  {reason: "What was committed in the gap cannot be restored.", lost: []wal.Range{lost(7, 8)}, beat: in(8), want: []instance.Gap{gap(lost(7, 8), nil, nil)}},
		"First":   {reason: "Nor in its first segment.", lost: []wal.Range{lost(7, 8)}, beat: in(7), want: []instance.Gap{gap(lost(7, 8), nil, nil)}},
		"Beyond":  {reason: "Nor what was committed after it, as when the store has lost older WAL.", lost: []wal.Range{lost(3, 3)}, beat: in(8), want: []instance.Gap{gap(lost(3, 3), nil, nil)}},
		"Between": {reason: "Nor what is between two gaps.", lost: []wal.Range{lost(3, 3), lost(7, 7)}, beat: in(5), want: []instance.Gap{gap(lost(3, 3), nil, nil), gap(lost(7, 7), nil, nil)}},
		"Unknown": {reason: "A report of an older version does not show whether it is.", lost: []wal.Range{lost(7, 7)}, beat: &beat{at: at}, want: []instance.Gap{gap(lost(7, 7), nil, nil)}},
		"None":    {reason: "Nothing was recoverable.", lost: []wal.Range{lost(7, 7)}, want: []instance.Gap{gap(lost(7, 7), nil, nil)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withLost(tc.gaps, &archive.Comparison{Lost: tc.lost, Compared: lost(tc.from, 9)}, tc.beat)); diff != "" {
				t.Errorf("%s\nwithLost(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWithSets(t *testing.T) {
	first, second := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), time.Date(2026, 1, 3, 3, 4, 0, 0, time.UTC)
	before := pgbackrest.Set{WALStart: "000000010000000000000002", Stop: first}
	after := pgbackrest.Set{WALStart: "000000020000000000000005", Stop: second}
	open := instance.Gap{First: "000000010000000000000003", Last: "000000010000000000000004"}
	ended := open
	ended.To = &second
	late := open
	late.From = new(second.Add(time.Hour))
	cases := map[string]struct {
		reason string
		gap    instance.Gap
		sets   []pgbackrest.Set
		want   []instance.Gap
	}{
		"Open":    {reason: "A backup from before it does not end it.", gap: open, sets: []pgbackrest.Set{before}, want: []instance.Gap{open}},
		"Within":  {reason: "Nor does one that begins in it.", gap: open, sets: []pgbackrest.Set{before, {WALStart: "000000010000000000000004", Stop: second}}, want: []instance.Gap{open}},
		"Ended":   {reason: "One that begins after it does.", gap: open, sets: []pgbackrest.Set{before, after}, want: []instance.Gap{ended}},
		"Older":   {reason: "Of one that was found after that it is not known what can be restored before it.", gap: late, sets: []pgbackrest.Set{before, after}, want: []instance.Gap{ended}},
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

// TestKeepWhole: the archive is compared before any WAL is released, again after a failure, and
// again while there is a gap that a standby may fill.
func TestKeepWhole(t *testing.T) {
	s := &servers{}
	var lost []wal.Range
	var fault error
	compared := 0
	a := &archiving{
		Manager: &Manager{Exchange: &exchange.Exchange{Notes: exchange.NewNotes(slog.New(slog.DiscardHandler))}, server: s},
		complete: func(context.Context, string) (*archive.Comparison, error) {
			compared++
			return &archive.Comparison{BackedUp: true, Lost: lost}, fault
		},
		sets:  func(context.Context, string) ([]pgbackrest.Set, error) { return nil, nil },
		whole: whole{known: true},
	}
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	step := func(what string, wantCompared, wantReleased, wantGaps int) {
		t.Helper()
		a.keepWhole(t.Context(), now, postgres.Archiver{Current: "000000020000000000000009"})
		if got := len(s.called()); compared != wantCompared || got != wantReleased || len(a.gaps) != wantGaps {
			t.Errorf("%s: want %d, %d, %d, compared %d times, released %d times, %d gaps", what, wantCompared, wantReleased, wantGaps, compared, got, len(a.gaps))
		}
	}
	step("while the repository is not set up", 0, 0, 0)
	a.created, fault = true, errors.New("the store does not answer")
	step("at first", 1, 0, 0)
	step("at once again", 1, 0, 0)
	a.failure = func() string { return "" }
	says := func(at time.Time) string { return a.judge(postgres.Archiver{Now: at}).Failing }
	if got := says(now.Add(stuckFor - time.Second)); got != "" {
		t.Errorf("it has failed for a moment: got %q", got)
	}
	if got, want := says(now.Add(stuckFor)), "the archive cannot be compared with the servers' WAL, all of which is kept until then: the store does not answer"; got != want {
		t.Errorf("it fails for minutes: want %q, got %q", want, got)
	}
	fault, lost = nil, []wal.Range{{First: wal.Segment{Timeline: 1, Number: 3}, Last: wal.Segment{Timeline: 1, Number: 4}}}
	now = now.Add(compareAgain)
	step("once the store answers", 2, 0, 1)
	if got := says(now.Add(time.Hour)); got != "" {
		t.Errorf("it is compared: got %q", got)
	}
	step("afterwards", 2, 1, 1)
	// One that fails later is no doubt about what was compared.
	fault, now = errors.New("the store does not answer"), now.Add(openPeriod)
	step("while the store is away", 3, 1, 1)
	if got := says(now.Add(time.Hour)); got != "" {
		t.Errorf("it was compared before: got %q", got)
	}
	fault, lost, now = nil, nil, now.Add(openPeriod)
	step("once a standby has filled the gap", 4, 1, 0)
	now = now.Add(time.Hour)
	step("later", 4, 2, 0)
	if diff := cmp.Diff([]string{"release storeplane_archive 0/9000000", "release storeplane_archive 0/9000000"}, s.called()); diff != "" {
		t.Errorf("what is released: -want, +got:\n%s", diff)
	}
}

// TestQueuedByCompare: what a comparison has archived again is not in the statistics that were read
// before it, so that these do not show what can be restored.
func TestQueuedByCompare(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	segment := func(n uint64) string { return wal.Segment{Timeline: 2, Number: n}.String() }
	gap := instance.Gap{First: segment(4), Last: segment(4)}
	var fault error
	a := &archiving{
		Manager: &Manager{Exchange: &exchange.Exchange{Notes: exchange.NewNotes(slog.New(slog.DiscardHandler))}, server: &servers{}},
		complete: func(context.Context, string) (*archive.Comparison, error) {
			return &archive.Comparison{BackedUp: true}, fault
		},
		sets:    func(context.Context, string) ([]pgbackrest.Set, error) { return nil, nil },
		failure: func() string { return "" },
		whole:   whole{known: true, backedUp: true},
		created: true,
	}
	step := func(what string, want *time.Time) {
		t.Helper()
		stats := postgres.Archiver{Now: now, Last: segment(20), LastAt: now, Current: segment(21)}
		a.keepWhole(t.Context(), now, stats)
		state := a.judge(stats)
		a.publishArchive(state, "7", "7", "")
		if diff := cmp.Diff(want, state.Recoverable); diff != "" {
			t.Errorf("%s: Recoverable: -want, +got:\n%s", what, diff)
		}
	}
	first := now
	a.beats, fault = []beat{{segment: segment(20), at: first}}, errors.New("the store does not answer")
	step("the comparison fails", nil)
	fault, now = nil, now.Add(compareAgain)
	step("it queues older segments", nil)
	step("none of them waits", &first)

	a.gaps, now = []instance.Gap{gap}, now.Add(openPeriod)
	second := now.Add(instance.ArchiveStep)
	a.beats = []beat{{segment: segment(20), at: second}}
	step("a comparison that finds the gap filled queues segments, too", &first)
	step("none of those waits", &second)
}

// TestOlderGap: a gap before the newest backup has ended already, so no backup is begun for it, and
// what comes after it can be restored.
func TestOlderGap(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	segment := func(n uint64) wal.Segment { return wal.Segment{Timeline: 1, Number: n} }
	sets := []pgbackrest.Set{{WALStart: segment(2).String(), Stop: now.Add(-2 * time.Hour)}, {WALStart: segment(6).String(), Stop: now.Add(-time.Hour)}}
	a := &archiving{
		Manager: &Manager{Exchange: &exchange.Exchange{Notes: exchange.NewNotes(slog.New(slog.DiscardHandler))}, server: &servers{}},
		complete: func(context.Context, string) (*archive.Comparison, error) {
			return &archive.Comparison{BackedUp: true, Lost: []wal.Range{{First: segment(4), Last: segment(4)}}, Sets: sets}, nil
		},
		sets:    func(context.Context, string) ([]pgbackrest.Set, error) { return sets, nil },
		failure: func() string { return "" },
		whole:   whole{known: true, backedUp: true},
		created: true,
		beats:   []beat{{segment: segment(7).String(), at: now}},
	}
	stats := postgres.Archiver{Now: now, Last: segment(8).String(), LastAt: now, Current: segment(9).String()}
	// The archive is compared in the first pass, and what that queued is known in the second.
	for range 2 {
		a.keepWhole(t.Context(), now, stats)
	}
	want := &instance.Archive{BackedUp: true, Recoverable: &now, RecoverableSegment: segment(7).String(), Gaps: []instance.Gap{{First: segment(4).String(), Last: segment(4).String(), To: &sets[1].Stop}}}
	if diff := cmp.Diff(want, a.judge(stats)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestStoreLost: once a repository has lost its backups nothing is recoverable until there is a new
// one, and the gap stays the same while its backup is under way.
func TestStoreLost(t *testing.T) {
	segment := func(n uint64) wal.Segment { return wal.Segment{Timeline: 1, Number: n} }
	found := archive.Comparison{}
	var sets []pgbackrest.Set
	a := &archiving{
		Manager:  &Manager{Exchange: &exchange.Exchange{Notes: exchange.NewNotes(slog.New(slog.DiscardHandler))}, server: &servers{}},
		complete: func(context.Context, string) (*archive.Comparison, error) { c := found; return &c, nil },
		sets:     func(context.Context, string) ([]pgbackrest.Set, error) { return sets, nil },
		failure:  func() string { return "" },
		whole:    whole{known: true},
		created:  true,
	}
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	stats := postgres.Archiver{Last: segment(7).String(), LastAt: now, Current: segment(8).String()}
	step := func(what string, want *instance.Archive) {
		t.Helper()
		now = now.Add(closedPeriod)
		stats.Now = now
		var got *instance.Archive
		// The archive is compared in the first pass, and what that queued is known in the second.
		for range 2 {
			a.keepWhole(t.Context(), now, stats)
			got = a.judge(stats)
			a.publishArchive(got, "7", "7", "")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", what, diff)
		}
	}
	beaten := now
	a.beats = []beat{{segment: segment(6).String(), at: beaten}}
	step("before the first backup", &instance.Archive{Recoverable: &beaten, RecoverableSegment: segment(6).String()})
	a.compared = false
	step("compared again before the first backup", &instance.Archive{Recoverable: &beaten, RecoverableSegment: segment(6).String()})
	sets = []pgbackrest.Set{{WALStart: segment(2).String()}}
	step("with a backup", &instance.Archive{Recoverable: &beaten, RecoverableSegment: segment(6).String(), BackedUp: true})

	sets, a.compared = nil, false
	found.Compared = wal.Range{First: segment(3), Last: segment(7)}
	gap := instance.Gap{First: segment(3).String(), Last: segment(7).String()}
	step("without it", &instance.Archive{Gaps: []instance.Gap{gap}})
	found.Compared = wal.Range{First: segment(5), Last: segment(9)}
	a.beats = []beat{{segment: segment(6).String(), at: now}}
	step("later", &instance.Archive{Gaps: []instance.Gap{gap}})

	sets, found.BackedUp = []pgbackrest.Set{{WALStart: segment(8).String()}}, true
	step("with a new backup", &instance.Archive{BackedUp: true})
}
