package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

func TestArchiveOf(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := began.Add(time.Minute)
	good := instance.Archive{Recoverable: &at, Reported: &at}
	const report, old = `{"recoverable": "2026-01-01T00:01:00Z", "reported": "2026-01-01T00:01:00Z"}`, `{"reported": "2025-12-31T00:01:00Z"}`
	dead := &instance.Archive{Failing: silent, Reported: new(time.Date(2025, 12, 31, 0, 1, 0, 0, time.UTC))}
	cases := map[string]struct {
		reason string
		report string
		before *instance.Archive
		now    time.Time
		want   *instance.Archive
	}{
		"New":      {reason: "The pod may still have to start.", now: began.Add(time.Minute)},
		"Never":    {reason: "It does not start.", now: began.Add(12 * time.Minute), want: &instance.Archive{Failing: silent}},
		"NeverYet": {reason: "It did not under the primary before either.", before: &instance.Archive{Failing: silent}, now: began.Add(time.Minute), want: &instance.Archive{Failing: silent}},
		"Reported": {reason: "It has reported.", report: report, now: began.Add(6 * time.Minute), want: &good},
		"Catching": {reason: "It is far behind, and says so.", report: `{"reported": "2026-01-01T00:01:00Z"}`, now: began.Add(6 * time.Minute), want: &instance.Archive{Reported: &at}},
		"Restarted": {
			reason: "The pod was replaced, and does not know yet how far it is.", report: `{"reported": "2026-01-01T00:01:00Z", "system": "one", "backedUp": true}`,
			before: &instance.Archive{System: "one", BackedUp: true, Recoverable: &began, Reported: &began}, now: began.Add(2 * time.Minute),
			want: &instance.Archive{System: "one", BackedUp: true, Recoverable: &began, Reported: &at},
		},
		"RestartedAway": {
			reason: "The pod was replaced while the store is away.", report: `{"reported": "2026-01-01T00:01:00Z", "failing": "the store is away"}`,
			before: &instance.Archive{System: "one", BackedUp: true, Recoverable: &began, Reported: &began}, now: began.Add(2 * time.Minute),
			want: &instance.Archive{System: "one", BackedUp: true, Recoverable: &began, Reported: &at, Failing: "the store is away"},
		},
		"Parted": {
			reason: "Another history has begun.", report: `{"reported": "2026-01-01T00:01:00Z", "system": "two"}`,
			before: &instance.Archive{System: "one", BackedUp: true, Recoverable: &began, Reported: &began}, now: began.Add(2 * time.Minute),
			want: &instance.Archive{System: "two", Reported: &at},
		},
		"Silent":    {reason: "It was evicted.", report: report, now: began.Add(13 * time.Minute), want: &instance.Archive{Recoverable: &at, Reported: &at, Failing: silent, Since: &at}},
		"Resumed":   {reason: "The database was hibernated, and the pod starts, too.", report: old, before: &good, now: began.Add(30 * time.Second), want: &good},
		"StillDead": {reason: "Another primary does not bring it back.", report: old, before: dead, now: began.Add(30 * time.Second), want: dead},
		"Dead":      {reason: "It has had the time to start.", report: old, before: &good, now: began.Add(2 * time.Minute), want: dead},
		"Failing":   {reason: "It has said why itself.", report: `{"reported": "2026-01-01T00:01:00Z", "failing": "the store is away"}`, now: began.Add(2 * time.Minute), want: &instance.Archive{Reported: &at, Failing: "the store is away"}},
		"Broken":    {reason: "What cannot be read is no report.", report: `{`, now: began.Add(time.Minute)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reports := &corev1.ConfigMap{Data: map[string]string{instance.ArchiveKey: tc.report}}
			if diff := cmp.Diff(tc.want, archiveOf(reports, tc.before, began, tc.now)); diff != "" {
				t.Errorf("%s\narchiveOf(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got := archiveOf(nil, nil, began, began.Add(time.Minute)); got != nil {
		t.Errorf("without a ConfigMap: want nothing, got %+v", got)
	}
}

// TestParts: a report parts the data of the primary that it is of, and no other.
func TestParts(t *testing.T) {
	began := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	before, after := began.Add(-time.Second), began.Add(6*time.Minute)
	for name, tc := range map[string]struct {
		reason  string
		archive *instance.Archive
		want    bool
	}{
		"None":       {reason: "Without an archive there is no other history."},
		"Parted":     {reason: "It was found while this server was the primary.", archive: &instance.Archive{System: "one", Parted: true, Reported: &after}, want: true},
		"Continues":  {reason: "It has what is archived.", archive: &instance.Archive{System: "one", Reported: &after}},
		"Earlier":    {reason: "It was found of another primary, whose volume may have been replaced.", archive: &instance.Archive{System: "one", Parted: true, Reported: &before}},
		"Unknown":    {reason: "It is not known of which data it is.", archive: &instance.Archive{Parted: true, Reported: &after}},
		"Unreported": {reason: "There is no report yet.", archive: &instance.Archive{System: "one", Parted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parts(tc.archive, began); got != tc.want {
				t.Errorf("%s\nparts(): got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestParting: that the data is of another history becomes one event, also where the answer of the server was lost.
func TestParting(t *testing.T) {
	began := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	type step struct {
		// system is that of the report, which has found that the data lacks something if parted. The statement is sent then or
		// not, and its answer is that the identifier is another one, or none.
		system         string
		parted         bool
		sent, replaced bool
		want           bool
	}
	for name, steps := range map[string][]step{
		"Whole":    {{system: "one"}, {system: "one"}},
		"Answered": {{system: "one", parted: true, sent: true, replaced: true, want: true}, {system: "one", parted: true, replaced: true}, {system: "two"}},
		"Lost":     {{system: "one", parted: true, sent: true}, {system: "one", parted: true}, {system: "one", parted: true, replaced: true, want: true}, {system: "two"}},
		"Late":     {{system: "one", parted: true, sent: true}, {}, {system: "two", want: true}, {system: "two"}},
		"Twice":    {{system: "one", parted: true, sent: true, replaced: true, want: true}, {system: "two", parted: true, sent: true, replaced: true, want: true}},
		"Others":   {{system: "one", parted: true, replaced: true}, {system: "two"}},
		"Unsent":   {{system: "one", parted: true}, {system: "two"}},
	} {
		t.Run(name, func(t *testing.T) {
			var p parting
			for i, s := range steps {
				asked := ""
				a := &instance.Archive{System: s.system, Parted: s.parted, Reported: new(began.Add(time.Minute))}
				got := p.pass(a, began, func(system string) (sent, replaced bool) {
					asked = system
					return s.sent, s.replaced
				})
				if got != s.want || (asked == s.system) != s.parted && s.system != "" {
					t.Errorf("step %d, %+v: pass() returned %t, and had the identifier %q replaced", i, s, got, asked)
				}
			}
		})
	}
	var p parting
	if p.pass(nil, began, nil) {
		t.Error("pass() without an archive: an event")
	}
}
