package backup

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// mergeReports adds what runs reported to what was known before. Jobs are removed, and their
// reports with them, so nothing is reverted because its Job is gone. Absorbing the same reports
// again changes nothing, by which the controller finds out that a Job is no longer needed.
// ofCluster is true for the backups of a DatabaseCluster's own pgBackRest.
func mergeReports(known backupv1.BackupObservation, runs []workload.Run, ofCluster bool) backupv1.BackupObservation {
	o := *known.DeepCopy()
	if r := latestCatalog(runs, o.CatalogTime); r != nil {
		o.CatalogTime = at(r.Report.Finished)
		catalog(&o, r.Report.Catalog, ofCluster)
	}
	for _, r := range runs {
		switch {
		case r.Action == backup.Backup && !r.Scheduled.IsZero() && after(r.Scheduled, o.LastScheduleTime):
			o.LastScheduleTime = at(r.Scheduled)
		default:
		}
		if !r.Succeeded() || r.Report == nil || r.Report.Backup == nil {
			continue
		}
		switch e := r.Report.Backup; r.Action {
		case backup.Backup:
			if before(r.Report.Finished, o.CatalogTime) && !lists(&o, e.ID, ofCluster) {
				continue // it is gone, or in the store of before
			}
			if after(e.Time, o.LastSuccessfulTime) {
				newest(&o, e)
			}
		case backup.Verify:
			if before(r.Finished, o.CatalogTime) && !lists(&o, e.ID, ofCluster) {
				continue // the backup is gone, or counts no longer
			}
			if when := verifiedAt(r); after(when, o.LastVerifiedTime) {
				o.LastVerifiedTime, o.LastVerified = at(when), e.ID
			}
		case backup.Check, backup.Serve, backup.Restore, backup.Delete:
		}
	}
	o.LastFailure = lastFailure(o, runs)
	return o
}

// verifiedAt returns when a run found a backup good.
func verifiedAt(r workload.Run) time.Time {
	if v := r.Report.Backup.Verified; v != nil {
		return *v
	}
	return r.Finished
}

// latestCatalog returns the run that listed the store last, or nil if none did since then.
func latestCatalog(runs []workload.Run, since *metav1.Time) *workload.Run {
	var out *workload.Run
	for i, r := range runs {
		if r.Report == nil || r.Report.Catalog == nil || before(r.Report.Finished, since) {
			continue
		}
		if out == nil || r.Report.Finished.After(out.Report.Finished) {
			out = &runs[i]
		}
	}
	return out
}

// shown is how many backups a status lists.
const shown = 10

func catalog(o *backupv1.BackupObservation, c *backup.Catalog, ofCluster bool) {
	o.Count, o.NotAuthentic = count(c.Count), c.NotAuthentic[:min(len(c.NotAuthentic), shown)]
	o.FirstRecoverableTime, o.LastRecoverableTime = atPointer(c.Oldest), atPointer(c.Latest)
	o.SystemIdentifier, o.OtherSystems = c.System, nil
	for _, s := range c.Others {
		o.OtherSystems = append(o.OtherSystems, backupv1.BackupSystem{SystemIdentifier: s.ID, Count: count(s.Count), FirstRecoverableTime: *at(s.First), LastBackupTime: *at(s.Last)})
	}
	o.Backups = nil
	for i := range c.Backups[:min(len(c.Backups), shown)] {
		e := &c.Backups[i]
		o.Backups = append(o.Backups, backupv1.BackupEntry{ID: e.ID, Time: *at(e.Time), Size: e.Size, Verified: atPointer(e.Verified)})
	}
	o.LastSuccessfulTime, o.LastDuration, o.Size = nil, nil, nil
	if len(c.Backups) > 0 {
		newest(o, &c.Backups[0])
	}
	switch {
	case c.Verified != nil && c.Verified.Verified != nil:
		o.LastVerifiedTime, o.LastVerified = atPointer(c.Verified.Verified), c.Verified.ID
	case !lists(o, o.LastVerified, ofCluster):
		o.LastVerifiedTime, o.LastVerified = nil, ""
	}
}

// lists reports whether the store may hold a backup that was verified, although no backup in the
// store is marked so. What is recorded beside a backup is authoritative, but for those of a
// DatabaseCluster's own pgBackRest: repositories of older releases have no marks.
func lists(o *backupv1.BackupObservation, id string, ofCluster bool) bool {
	if !ofCluster {
		return false
	}
	return int(o.Count) > len(o.Backups) || slices.ContainsFunc(o.Backups, func(e backupv1.BackupEntry) bool { return e.ID == id })
}

// count converts a number of backups to the type that the status has.
func count(n int) int32 { return int32(min(n, 1<<30)) } //nolint:gosec // It is bounded.

func newest(o *backupv1.BackupObservation, e *backup.Entry) {
	o.LastSuccessfulTime = at(e.Time)
	o.LastDuration = nil
	if e.Seconds > 0 {
		o.LastDuration = &metav1.Duration{Duration: time.Duration(e.Seconds * float64(time.Second)).Round(100 * time.Millisecond)}
	}
	o.Size = new(quantity(e.Size))
}

// quantity returns a number of bytes, rounded up so that it is easy to read. The list of backups
// has the exact one.
func quantity(bytes int64) resource.Quantity {
	const enough = 10
	unit := int64(1)
	for _, u := range []int64{1 << 10, 1 << 20, 1 << 30} {
		if bytes >= enough*u {
			unit = u
		}
	}
	return *resource.NewQuantity((bytes+unit-1)/unit*unit, resource.BinarySI)
}

// lastFailure returns the last failure of a backup, or nil if one has succeeded since.
func lastFailure(o backupv1.BackupObservation, runs []workload.Run) *backupv1.Failure {
	out := o.LastFailure
	good := lastGood(o)
	for _, r := range runs {
		if r.Action != backup.Backup || !r.Ended {
			continue
		}
		if r.Succeeded() && after(r.Finished, good) {
			good = at(r.Finished)
		}
		if r.Silent && (ended(good, r) || o.LastFailure != nil && ended(&o.LastFailure.Time, r)) {
			continue
		}
		if r.Failed() && (out == nil || !before(r.Finished, &out.Time)) {
			out = &backupv1.Failure{Time: *at(r.Finished), Reason: string(r.Failure.Reason), Message: r.Failure.Message}
		}
	}
	if out != nil && good != nil && !out.Time.After(good.Time) {
		return nil
	}
	return out
}

// ended reports whether a time that is known is that of the end of a run or of a later one. A run
// whose pod is gone was observed before then.
func ended(known *metav1.Time, r workload.Run) bool {
	return known != nil && !known.Time.Before(r.Created)
}

// lastGood returns when the newest good backup was done.
func lastGood(o backupv1.BackupObservation) *metav1.Time {
	if o.LastSuccessfulTime == nil || o.LastDuration == nil {
		return o.LastSuccessfulTime
	}
	return at(o.LastSuccessfulTime.Add(o.LastDuration.Duration))
}

// at returns a time as the API server stores it: in UTC and whole seconds.
func at(t time.Time) *metav1.Time { return new(metav1.NewTime(t.UTC().Truncate(time.Second))) }

func atPointer(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return at(*t)
}

// after reports whether a time is later than a known one. It is if none is known.
func after(t time.Time, known *metav1.Time) bool { return known == nil || at(t).After(known.Time) }

// before reports whether a time is earlier than a known one. It is not if none is known.
func before(t time.Time, known *metav1.Time) bool {
	return known != nil && at(t).Time.Before(known.Time)
}
