package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func at(times ...float64) []Ack {
	var out []Ack
	for i, t := range times {
		out = append(out, Ack{Sent: t - 0.01, At: t, Writer: "a", Seq: i + 1, Server: "10.0.0.1", Timeline: 1})
	}
	return out
}

func TestGap(t *testing.T) {
	cases := map[string]struct {
		reason   string
		acks     []Ack
		from, to float64
		want     float64
	}{
		"Between":   {"The longest of several counts", at(1, 2, 5, 6), 1, 6, 3},
		"Unsorted":  {"Writers report as they come", at(6, 2, 1, 5), 1, 6, 3},
		"Begun":     {"A gap that had begun before the interval counts in full", at(1, 5), 3, 5, 4},
		"Unended":   {"A gap that goes on counts as far as it is known", at(1, 2), 1, 9, 7},
		"EndsLater": {"A gap that ends after the interval counts in full", at(1, 2, 9), 1, 5, 7},
		"Before":    {"A gap that was over before the interval is another one's", at(1, 8, 9, 10), 8, 10, 1},
		"After":     {"A gap that begins after the interval is another one's", at(1, 2, 9), 1, 2, 1},
		"None":      {"Without any acknowledgement all of it is a gap", nil, 2, 5, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Gap(tc.acks, tc.from, tc.to), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("\n%s\nGap(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSilence(t *testing.T) {
	begin, end := Silence(at(1, 2, 5, 6), 1, 6)
	if diff := cmp.Diff([]float64{2, 5}, []float64{begin, end}, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("\nSilence(...) begins and ends with the acknowledgements around the gap: -want, +got:\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	ack := func(writer string, seq int) Ack { return Ack{Writer: writer, Seq: seq} }
	cases := map[string]struct {
		reason string
		acks   []Ack
		rows   []Rows
		want   []Ack
	}{
		"AllThere": {
			reason: "Rows that were never acknowledged are no loss",
			acks:   []Ack{ack("a", 1), ack("a", 3), ack("b", 1)},
			rows:   []Rows{{"a", 3, 4}, {"b", 1, 9}, {"a", 1, 1}},
		},
		"Lost": {
			reason: "What is between rows, after them, or another writer's is not there",
			acks:   []Ack{ack("a", 1), ack("a", 2), ack("a", 5), ack("b", 1), ack("c", 0)},
			rows:   []Rows{{"a", 1, 1}, {"a", 3, 4}, {"c", 1, 1}},
			want:   []Ack{ack("a", 2), ack("a", 5), ack("b", 1), ack("c", 0)},
		},
		"NoRows": {
			reason: "An empty table has lost everything",
			acks:   []Ack{ack("a", 1)},
			want:   []Ack{ack("a", 1)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Missing(tc.acks, tc.rows)); diff != "" {
				t.Errorf("\n%s\nMissing(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDuel(t *testing.T) {
	ack := func(server string, timeline int, sent, at float64) Ack {
		return Ack{Server: server, Timeline: timeline, Sent: sent, At: at}
	}
	cases := map[string]struct {
		reason string
		acks   []Ack
		want   string
	}{
		"Succession": {
			reason: "One after the other is what failover is, back to the first one too",
			acks:   []Ack{ack("x", 1, 1, 2), ack("y", 2, 3, 4), ack("x", 3, 5, 6)},
		},
		"LateAnswer": {
			reason: "What was sent before the new primary's first write may be answered after it",
			acks:   []Ack{ack("x", 1, 1, 2), ack("x", 1, 2, 9), ack("y", 2, 3, 4)},
		},
		"OldWrites": {
			reason: "A write sent to the old primary after the new one's first is a duel",
			acks:   []Ack{ack("x", 1, 1, 2), ack("y", 2, 3, 4), ack("x", 1, 4.5, 5)},
			want:   "two primaries at a time: x on timeline 1 acknowledged a write 1.00s after y on timeline 2 had",
		},
		"SameTimeline": {
			reason: "Two that were promoted from the same one are a duel",
			acks:   []Ack{ack("x", 2, 1, 2), ack("y", 2, 3, 4), ack("x", 2, 4.5, 5)},
			want:   "two primaries at a time: x on timeline 2 acknowledged a write 1.00s after y on timeline 2 had",
		},
		"Moved": {
			reason: "A primary that comes back with another address and goes on is no duel",
			acks:   []Ack{ack("x", 2, 1, 2), ack("y", 2, 3, 4), ack("y", 2, 5, 6)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Duel(tc.acks); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nDuel(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
