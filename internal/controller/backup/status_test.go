package backup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// drawRuns draws runs against one store, in the order in which they ended.
func drawRuns(t *rapid.T) []workload.Run {
	var entries []backup.Entry
	now := hours(0)
	out := make([]workload.Run, 0, 8)
	for i := range rapid.IntRange(0, 8).Draw(t, "runs") {
		began := now.Add(time.Duration(rapid.IntRange(1, 7200).Draw(t, "pause")) * time.Second)
		now = began.Add(time.Duration(rapid.IntRange(1000, 3600000).Draw(t, "took")) * time.Millisecond)
		a := rapid.SampledFrom([]backup.Action{backup.Check, backup.Backup, backup.Backup, backup.Verify}).Draw(t, "action")
		r := run(fmt.Sprintf("job-%d", i), a, began, now)
		if rapid.Bool().Draw(t, "fails") {
			r = failing(r, rapid.SampledFrom([]backup.Reason{backup.ToolFailed, backup.StoreDenied, backupv1.ReasonPodTerminated}).Draw(t, "why"), fmt.Sprint("failure ", i))
			if rapid.Bool().Draw(t, "silent") {
				r.Report = nil
			}
		} else {
			switch a {
			case backup.Backup:
				e := entry(began)
				e.Seconds = now.Sub(began).Seconds()
				entries = append([]backup.Entry{e}, entries...)
				r.Scheduled = began.Truncate(time.Minute)
			case backup.Verify:
				if len(entries) > 0 {
					entries = slices.Clone(entries)
					entries[0].Verified = new(now)
				}
			default:
			}
			r = listing(r, slices.Clone(entries)...)
		}
		out = append(out, r)
	}
	return out
}

// TestAbsorbTwice: a report that is in the status already changes nothing, so its Job can be
// deleted.
func TestAbsorbTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := drawRuns(t)
		once := mergeReports(backupv1.BackupObservation{}, runs, false)
		twice := mergeReports(once, runs, false)
		if !equality.Semantic.DeepEqual(once, twice) {
			t.Errorf("-once, +twice:\n%s", cmp.Diff(once, twice))
		}
	})
}

// TestAbsorbMoved: backups in the store of before do not count in another one, though their Jobs are left.
func TestAbsorbMoved(t *testing.T) {
	e := entry(hours(1))
	made := listing(run("made", backup.Backup, hours(1), hours(2)), e)
	made.Report.Backup = &e
	runs := []workload.Run{made, listing(run("checked", backup.Check, hours(3), hours(4)))}
	if o := mergeReports(backupv1.BackupObservation{}, runs[:1], false); o.LastSuccessfulTime == nil {
		t.Error("a backup was made, and is not reported")
	}
	if o := mergeReports(backupv1.BackupObservation{}, runs, false); o.LastSuccessfulTime != nil || o.Count != 0 {
		t.Errorf("the other store has %d backups, the last of %v", o.Count, o.LastSuccessfulTime)
	}
}

// TestAbsorbLate: a Job that began before the destination was changed ends after the first listing of
// the new one. What it lists is in the store of before.
func TestAbsorbLate(t *testing.T) {
	late := listing(run("late", backup.Backup, hours(1), hours(5)), entry(hours(1)))
	late.Report.Backup = new(entry(hours(1)))
	checked := listing(run("checked", backup.Check, hours(2), hours(3)))
	s := state(settle(t), at2(hours(6)), with(checked), with(late))
	s.Backup.Status.AtProvider = backupv1.BackupObservation{}
	before := *s
	before.Store.Destination.Bucket = "before"
	for place, want := range map[string]int32{"": 1, before.place(): 0, s.place(): 1} {
		late.Report.Place = place
		s.Runs = []workload.Run{checked, late}
		d, err := Decide(s)
		if err != nil {
			t.Fatal(err)
		}
		if o := d.Observation; o.Count != want || (o.LastSuccessfulTime != nil) != (want > 0) {
			t.Errorf("place %q: %d backups, the last of %v, want %d", place, o.Count, o.LastSuccessfulTime, want)
		}
	}
}

// TestAbsorbSilent: nothing changes in the status when pods disappear before their Jobs, as with their
// nodes.
func TestAbsorbSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := drawRuns(t)
		once := mergeReports(backupv1.BackupObservation{}, runs, false)
		left := slices.Clone(runs)
		for i := range left {
			if !rapid.Bool().Draw(t, "silent pod") {
				continue
			}
			r := &left[i]
			why := backup.Reason(backupv1.ReasonResultMissing)
			if r.Failed() {
				why = backupv1.ReasonPodTerminated
			}
			r.Report, r.Silent, r.Failure = nil, true, &backup.Failure{Reason: why}
			r.Finished = r.Finished.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "later")) * time.Millisecond)
		}
		after := mergeReports(once, left, false)
		if !equality.Semantic.DeepEqual(once, after) {
			t.Errorf("-with all pods, +without some:\n%s", cmp.Diff(once, after))
		}
	})
}

// TestAbsorbForgets: nothing is removed from the status when Jobs are deleted, in any order.
func TestAbsorbForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := drawRuns(t)
		once := mergeReports(backupv1.BackupObservation{}, runs, false)
		left := slices.DeleteFunc(slices.Clone(runs), func(workload.Run) bool { return rapid.Bool().Draw(t, "gone") })
		after := mergeReports(once, left, false)
		if !equality.Semantic.DeepEqual(once, after) {
			t.Errorf("-with all Jobs, +with %d of %d:\n%s", len(left), len(runs), cmp.Diff(once, after))
		}
	})
}

// TestAbsorbPiecemeal: a provider that was down reads what it missed, and arrives at the same
// status.
func TestAbsorbPiecemeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := drawRuns(t)
		whole := mergeReports(backupv1.BackupObservation{}, runs, false)
		cut := rapid.IntRange(0, len(runs)).Draw(t, "cut")
		pieces := mergeReports(mergeReports(backupv1.BackupObservation{}, runs[:cut], false), runs, false)
		if !equality.Semantic.DeepEqual(whole, pieces) {
			t.Errorf("-at once, +in two pieces:\n%s", cmp.Diff(whole, pieces))
		}
	})
}

// TestNoFalseSuccess: a backup is reported only if a report listed one, and the last failure stays
// unless a later run succeeded.
func TestNoFalseSuccess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := drawRuns(t)
		got := mergeReports(backupv1.BackupObservation{}, runs, false)
		var good, bad *workload.Run
		listed := false
		for i, r := range runs {
			listed = listed || r.Report != nil && r.Report.Catalog != nil && len(r.Report.Catalog.Backups) > 0
			if r.Action != backup.Backup {
				continue
			}
			if r.Succeeded() {
				good = &runs[i]
			} else {
				bad = &runs[i]
			}
		}
		if got.LastSuccessfulTime != nil && !listed {
			t.Errorf("a backup of %s that no run reported", got.LastSuccessfulTime)
		}
		stands := bad != nil && (good == nil || at(bad.Finished).After(at(good.Finished).Time))
		if stands != (got.LastFailure != nil) {
			t.Errorf("want a failure %t, got %v", stands, got.LastFailure)
		}
	})
}

func TestAbsorbPhysical(t *testing.T) {
	// A pgBackRest repository does not record what was verified.
	runs := []workload.Run{
		listing(scheduled(hours(2), hours(2.1)), entry(hours(2))),
		func() workload.Run {
			r := run("orders-verify-1", backup.Verify, hours(3), hours(3.1))
			r.Report.Backup = new(entry(hours(2)))
			return r
		}(),
		listing(scheduled(hours(26), hours(26.1)), entry(hours(26)), entry(hours(2))),
	}
	got := mergeReports(backupv1.BackupObservation{}, runs, true)
	if diff := cmp.Diff(at(hours(3.1)), got.LastVerifiedTime); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("20260301T020000Z", got.LastVerified); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	// The repository was lost, and has another backup now.
	runs = append(runs, listing(scheduled(hours(50), hours(50.1)), entry(hours(50))))
	if got := mergeReports(got, runs, true); got.LastVerifiedTime != nil || got.LastVerified != "" {
		t.Errorf("a backup that is gone counts as verified: %s at %s", got.LastVerified, got.LastVerifiedTime)
	}
}

// TestQuantity: sizes are rounded up to a unit that people read.
func TestQuantity(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0", 1: "1", 10239: "10239", 10240: "10Ki", 10241: "11Ki", 123456789: "118Mi", 20 << 30: "20Gi", 9 << 30: "9Gi", 9<<30 + 1: "9217Mi"} {
		if got := new(quantity(bytes)).String(); got != want {
			t.Errorf("%d: want %s, got %s", bytes, want, got)
		}
	}
}
