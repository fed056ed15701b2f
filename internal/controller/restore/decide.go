package restore

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// State is all that a decision depends on.
type State struct {
	Restore *backupv1.Restore
	Now     time.Time

	// Images are Storeplane's own images.
	Images images.Set

	// Problem is why the restore cannot start, or nil.
	Problem *resolve.Problem

	From   From
	Target resolve.Source
	Store  resolve.Store

	// Runs are those of the Jobs with the Restore's label.
	Runs []workload.Run

	// Left are the remaining copies of the store's credentials and of a key, once the Restore has
	// ended.
	Left []*corev1.Secret

	// Taken names an object of another owner whose name the Restore needs, or is "".
	Taken string
}

// From is where the backups are stored, and how they are encrypted.
type From struct {
	Namespace, Name string
	Destination     backupv1.Destination
	Encryption      *backupv1.Encryption

	// Key is the one that was generated for the Backup, if no Encryption is named, or nil.
	Key []byte

	// Version of the server that was backed up, or "" if it is not known.
	Version string
}

// Decision is what to do, and what to report.
type Decision struct {
	Observation backupv1.RestoreObservation
	Condition   xpv2.Condition
	Events      []event.Event

	// Apply are the objects to apply before the Job in Create is created.
	Apply  []client.Object
	Create *batchv1.Job

	// Remove are the Secrets that must not outlive the Job.
	Remove []*corev1.Secret
}

// Decide decides what to do about a Restore.
func Decide(s *State) (Decision, error) {
	known := s.Restore.Status.AtProvider
	d := Decision{Observation: *known.DeepCopy()}
	switch run := s.run(); {
	case known.CompletionTime != nil:
		d.over(s)
	case run != nil:
		d.follow(s, run)
	case known.StartTime != nil:
		d.fail(s, &backup.Failure{Reason: backupv1.ReasonJobNotFound, Message: "the Job " + known.Job + " is gone and left no report"}, s.Now)
	case s.Problem != nil:
		d.refuse(s, xpv2.ConditionReason(s.Problem.Reason), s.Problem.Message)
	case s.Taken != "":
		d.refuse(s, backupv1.ReasonAlreadyExists, s.Taken+" exists already and is not this Restore's: delete it, or give the Restore another name")
	default:
		if err := d.begin(s); err != nil {
			d.refuse(s, backupv1.ReasonVersionUnknown, err.Error())
		}
	}
	d.addEvents(s.Restore)
	return d, nil
}

// run returns the run of the Restore's Job, or nil.
func (s *State) run() *workload.Run {
	for i := range s.Runs {
		if s.Runs[i].Job == jobName(s.Restore.Name) && s.Runs[i].Owner == s.Restore.UID {
			return &s.Runs[i]
		}
	}
	return nil
}

// over decides about a Restore that has ended, which does not change any more. Its copies of the
// credentials and of the key are removed: they give access to what was granted for this Restore,
// and the grant may be withdrawn.
func (d *Decision) over(s *State) {
	d.Remove = s.Left
	if f := d.Observation.Failure; f != nil {
		d.Condition = condition(corev1.ConditionFalse, xpv2.ConditionReason(f.Reason), f.Message, s.Now)
		return
	}
	d.Condition = condition(corev1.ConditionTrue, xpv2.ReasonAvailable, "", s.Now)
}

// follow reports the state of the Job.
func (d *Decision) follow(s *State, r *workload.Run) {
	o := &d.Observation
	o.Job, o.StartTime = r.Job, cmp.Or(o.StartTime, at(r.Created))
	if r.Report != nil && r.Report.Backup != nil {
		o.Backup, o.BackupTime = r.Report.Backup.ID, at(r.Report.Backup.Time)
	}
	switch {
	case !r.Ended:
		o.Phase, o.Message = backupv1.RestoreRunning, "Restoring"
		switch {
		case r.PodFailure != "":
			o.Message = "The pod " + r.PodFailure
		case r.Failure != nil:
			o.Message = "Restoring again after a failed attempt: " + r.Failure.Message
		}
		d.Condition = condition(corev1.ConditionFalse, backupv1.ReasonRunning, o.Message, s.Now)
	case r.Failed():
		d.fail(s, r.Failure, r.Finished)
	default:
		o.Phase, o.Message, o.Failure, o.CompletionTime = backupv1.RestoreCompleted, "Restored", nil, at(r.Finished)
		o.Databases, o.Rows = r.Report.Databases, r.Report.Rows
		d.over(s)
	}
}

// fail ends the Restore as failed. It is not retried.
func (d *Decision) fail(s *State, f *backup.Failure, when time.Time) {
	o := &d.Observation
	o.Phase, o.Message, o.CompletionTime = backupv1.RestoreFailed, f.Message, at(when)
	o.Failure = &backupv1.Failure{Time: *at(when), Reason: string(f.Reason), Message: f.Message}
	d.over(s)
}

// final are the reasons that only a change fixes, of the Restore or of an object that it finds in
// its place. All others may be fixed by an object that is applied later.
var final = []xpv2.ConditionReason{
	backupv1.ReasonMethodNotSupported,
	backupv1.ReasonDestinationInvalid,
	backupv1.ReasonInvalidTask,
	backupv1.ReasonVersionUnknown,
	backupv1.ReasonAlreadyExists,
}

// refuse reports why the restore cannot start now. The phase is Failed if only a change fixes that.
func (d *Decision) refuse(s *State, reason xpv2.ConditionReason, message string) {
	d.Observation.Phase, d.Observation.Message = backupv1.RestorePending, message
	if slices.Contains(final, reason) {
		d.Observation.Phase = backupv1.RestoreFailed
	}
	d.Condition = condition(corev1.ConditionFalse, reason, message, s.Now)
}

// begin decides to start the restore.
func (d *Decision) begin(s *State) error {
	job, err := s.job()
	if err != nil {
		return err
	}
	d.Apply, d.Create = s.objects(), job
	d.Observation.Phase, d.Observation.Message = backupv1.RestorePending, "Starting"
	d.Condition = condition(corev1.ConditionFalse, backupv1.ReasonWaiting, "Starting", s.Now)
	return nil
}

// addEvents adds the event for a change of condition Ready, unless the Restore only waits.
func (d *Decision) addEvents(r *backupv1.Restore) {
	was := r.GetCondition(xpv2.TypeReady)
	c := d.Condition
	switch {
	case was.Status == c.Status && was.Reason == c.Reason:
	case c.Status == corev1.ConditionTrue:
		d.Events = append(d.Events, event.Normal(backupv1.ReasonRestored, "The backup was restored"))
	case c.Reason == backupv1.ReasonRunning:
		d.Events = append(d.Events, event.Normal(event.Reason(c.Reason), c.Message))
	case c.Reason != backupv1.ReasonWaiting:
		d.Events = append(d.Events, event.Warning(event.Reason(c.Reason), errors.New(c.Message)))
	}
}

func condition(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return xpv2.Condition{Type: xpv2.TypeReady, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)}
}

// at returns a time as the API server stores it: in UTC and whole seconds.
func at(t time.Time) *metav1.Time { return new(metav1.NewTime(t.UTC().Truncate(time.Second))) }
