package backup

import (
	"fmt"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// view is the state of a decision, from which the conditions of a Backup are derived.
type view struct {
	*State

	obs       backupv1.BackupObservation
	schedules []schedule
	verify    *schedule
	digest    string

	// beginning is how a Backup whose backups are made here continues that has no key.
	beginning beginning

	// problem is why nothing can be done, or nil.
	problem *refusal
}

// refusal is why a condition is not True.
type refusal struct {
	reason  xpv2.ConditionReason
	message string
}

// readyChecks are in order: the first one that refuses sets the reason and the message.
var readyChecks = []func(*view) *refusal{
	(*view).blocked,
	(*view).unescrowed,
	(*view).unreachable,
	(*view).unchecked,
	(*view).stuck,
	(*view).lost,
	(*view).none,
	(*view).old,
}

// ready returns condition Ready of the Backup.
func (v *view) ready() xpv2.Condition {
	for _, check := range readyChecks {
		if r := check(v); r != nil {
			return unready(r.reason, r.message, v.Now)
		}
	}
	switch f := v.obs.LastFailure; {
	case f != nil:
		return ready("The last backup failed: "+f.Message, v.Now)
	case v.suspended():
		return ready("The schedule is suspended", v.Now)
	}
	return ready("", v.Now)
}

func (v *view) blocked() *refusal { return v.problem }

// unreachable refuses if the last check of what is to be reached has failed.
func (v *view) unreachable() *refusal {
	r := v.lastCheck()
	if r == nil || r.Failure == nil || v.obs.Checked == v.digest {
		return nil
	}
	return &refusal{reason: xpv2.ConditionReason(r.Failure.Reason), message: r.Failure.Message}
}

// lastCheck returns the last check of what is to be reached now, or nil.
func (v *view) lastCheck() *workload.Run {
	for i := len(v.Runs) - 1; i >= 0; i-- {
		if r := &v.Runs[i]; r.Action == backup.Check && r.Digest == v.digest {
			return r
		}
	}
	return nil
}

// unchecked refuses if nothing has ever been reached.
func (v *view) unchecked() *refusal {
	if v.obs.Checked != "" {
		return nil
	}
	if r := v.lastCheck(); r != nil && r.PodFailure != "" {
		return &refusal{reason: backupv1.ReasonPodNotStarted, message: "Job " + r.Job + ": the pod " + r.PodFailure}
	}
	return &refusal{reason: backupv1.ReasonChecking, message: "Waiting for the first contact with the database and the store"}
}

// startGrace is how late a pod may start, or the first scheduled backup be, before it is reported.
const startGrace = 2 * time.Minute

// stuck refuses if a pod does not start.
func (v *view) stuck() *refusal {
	for _, r := range v.Runs {
		if r.Ended || r.PodFailure == "" || v.Now.Sub(r.Created) < startGrace {
			continue
		}
		return &refusal{reason: backupv1.ReasonPodNotStarted, message: "Job " + r.Job + ": the pod " + r.PodFailure}
	}
	return nil
}

// lost refuses if the repository has lost all backups that it held, and has no new one yet.
func (v *view) lost() *refusal {
	if !v.Lost {
		return nil
	}
	return &refusal{reason: backupv1.ReasonNoBackup, message: "The repository has lost all backups, and holds no new one yet"}
}

// none refuses if there is no backup though there should be one.
func (v *view) none() *refusal {
	if v.obs.LastSuccessfulTime != nil {
		return nil
	}
	if f := v.obs.LastFailure; f != nil {
		return &refusal{reason: backupv1.ReasonNoBackup, message: "There is no backup, and the last one failed: " + f.Message}
	}
	if v.active(backup.Backup) != nil {
		return nil
	}
	for _, s := range v.schedules {
		if due := s.next(v.Backup.CreationTimestamp.Time); !s.suspended && !due.IsZero() && v.Now.Sub(due) > startGrace {
			return &refusal{reason: backupv1.ReasonNoBackup, message: "There is no backup, and the first one was due"}
		}
	}
	return nil
}

// old refuses if the newest good backup is older than two periods.
func (v *view) old() *refusal {
	if v.obs.LastSuccessfulTime == nil {
		return nil
	}
	for _, s := range v.schedules {
		if s.suspended || !s.tooOld(v.obs.LastSuccessfulTime.Time, v.Now) {
			continue
		}
		message := "The newest good backup is older than two periods of the schedule"
		if f := v.obs.LastFailure; f != nil {
			message += ": " + f.Message
		}
		return &refusal{reason: backupv1.ReasonBackupOverdue, message: message}
	}
	return nil
}

// suspended reports whether there are schedules and all of them are suspended.
func (v *view) suspended() bool {
	for _, s := range v.schedules {
		if !s.suspended {
			return false
		}
	}
	return len(v.schedules) > 0
}

// active returns a run of an action that has not ended, or nil.
func (v *view) active(a backup.Action) *workload.Run {
	for i := range v.Runs {
		if r := &v.Runs[i]; !r.Ended && r.Action == a {
			return r
		}
	}
	return nil
}

// verified returns condition Verified of the Backup. was is the condition until now. The result of
// a verification comes first, so that a foreign backup in the store, which is not restored, does
// not hide that one of the Backup's own is damaged.
func (v *view) verified(was xpv2.Condition, known backupv1.BackupObservation) xpv2.Condition {
	good := v.obs.LastVerifiedTime
	failure := v.lastVerifyFailure(good)
	if failure != nil && !inconclusive(failure.Reason) && !v.foundNone(failure) {
		return disproven(xpv2.ConditionReason(failure.Reason), failure.Message, v.Now)
	}
	// The Job of a failed verification may have been removed. Its result stays.
	if was.Status == corev1.ConditionFalse && stands(was.Reason) && (good == nil || known.LastVerifiedTime.Equal(good)) {
		return was
	}
	if ids := v.obs.NotAuthentic; len(ids) > 0 {
		message := fmt.Sprintf("Backup %s in the store was not written with this Backup's key, and is neither counted nor restored: another program may write to the store. Change its credentials, and delete that backup there", ids[0])
		return disproven(xpv2.ConditionReason(backup.BackupNotAuthentic), message, v.Now)
	}
	unsealed := v.unsealed(was, known)
	switch {
	case unsealed && v.obs.LastSuccessfulTime == nil:
		message := "The store has no good encrypted backup, and plain ones of before are not restored while encryption is on: set annotation " + backupv1.RunNowAnnotation + " to start a backup"
		return disproven(backupv1.ReasonUnsealed, message, v.Now)
	case good == nil && !v.verifies():
		return unproven(backupv1.ReasonDisabled, "Verification is turned off", v.Now)
	case good == nil && v.obs.LastSuccessfulTime == nil:
		return unproven(backupv1.ReasonNoBackup, "There is no backup yet", v.Now)
	case good == nil:
		message := "No backup has been restored yet"
		if failure != nil {
			message += ": " + failure.Message
		}
		return unproven(backupv1.ReasonVerificationPending, message, v.Now)
	case !v.verifies() && v.Now.Sub(good.Time) > unverifiedAfter:
		return unproven(backupv1.ReasonDisabled, "Verification is turned off, and the last one is older than two weeks", v.Now)
	case !v.suspended() && v.verify != nil && v.verify.tooOld(good.Time, v.Now):
		message := "The last verification is older than two periods of its schedule"
		if failure != nil {
			message += ": " + failure.Message
		}
		return disproven(backupv1.ReasonVerificationOverdue, message, v.Now)
	}
	return proven(unsealed, v.Now)
}

// unverifiedAfter is how long a verification counts where no schedule repeats it: two periods of the
// default schedule.
const unverifiedAfter = 14 * 24 * time.Hour

// stands reports whether a reason is that of a failed verification, and not one that is found out
// anew each time.
func stands(r xpv2.ConditionReason) bool {
	seen := []xpv2.ConditionReason{backupv1.ReasonVerificationOverdue, backupv1.ReasonUnsealed, xpv2.ConditionReason(backup.BackupNotAuthentic)}
	return !slices.Contains(seen, r) && !inconclusive(backup.Reason(r))
}

// foundNone reports whether a verification failed because no backup in the store is the Backup's
// own. The listing of the store reports which are foreign.
func (v *view) foundNone(f *backup.Failure) bool {
	return f.Reason == backup.BackupNotAuthentic && v.obs.LastSuccessfulTime == nil
}

// unsealed reports whether the store has plain backups of before encryption was turned on. No field
// of the status records it: until the store is listed again, the condition does.
func (v *view) unsealed(was xpv2.Condition, known backupv1.BackupObservation) bool {
	if v.encryption() == nil {
		return false
	}
	if r := latestCatalog(v.Runs, known.CatalogTime); r != nil {
		return r.Report.Catalog.Unsealed > 0
	}
	return was.Reason == backupv1.ReasonUnsealed
}

// lastVerifyFailure returns why the last verification failed, or nil if it succeeded or one has
// succeeded since.
func (v *view) lastVerifyFailure(good *metav1.Time) *backup.Failure {
	for _, r := range slices.Backward(v.Runs) {
		if r.Action != backup.Verify || !r.Ended || r.Silent && ended(good, r) {
			continue
		}
		if r.Failed() && after(r.Finished, good) {
			return r.Failure
		}
		return nil
	}
	return nil
}

// inconclusive reports whether a verification failed for a reason that says nothing about the
// backup. A reason that a user must act on, such as too little memory, is not inconclusive, so that
// it is reported.
func inconclusive(r backup.Reason) bool {
	return slices.Contains([]backup.Reason{
		backup.StoreUnreachable, backup.Interrupted,
		backupv1.ReasonPodNotStarted, backupv1.ReasonPodTerminated, backupv1.ReasonEvicted, backupv1.ReasonResultMissing,
	}, r)
}

// phase returns the phase of the Backup.
func (v *view) phase() backupv1.BackupPhase {
	switch {
	case v.unreachable() != nil:
		return backupv1.BackupFailed
	case v.problem != nil && v.obs.Checked == "":
		return backupv1.BackupPending
	case v.problem != nil:
		return backupv1.BackupFailed
	case v.active(backup.Backup) != nil:
		return backupv1.BackupRunning
	case v.active(backup.Verify) != nil:
		return backupv1.BackupVerifying
	case v.obs.Checked == "":
		return backupv1.BackupPending
	case v.obs.LastFailure != nil:
		return backupv1.BackupFailed
	case v.suspended():
		return backupv1.BackupSuspended
	}
	return backupv1.BackupScheduled
}
