package backup

import (
	"encoding/json"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// Deletion is what to do about a Backup that is being deleted.
type Deletion struct {
	// Done is true once the Backup may be removed.
	Done bool

	// Create is a Job that deletes the backups, and Policy is applied before it. Remove are the
	// objects that would create more backups.
	Policy *networkingv1.NetworkPolicy
	Create *batchv1.Job
	Remove []client.Object

	// Failed is why the backups still exist, and how to delete the Backup and keep them.
	Failed error
}

// DecideDeletion decides what to do about a Backup that is being deleted. It is a function of the
// State alone.
func DecideDeletion(s *State) (Deletion, error) {
	if s.mayGo() {
		return Deletion{Done: true}, nil
	}
	d := Deletion{}
	if s.Problem != nil {
		d.Failed = stays(s.Problem.Message)
		return d, nil
	}
	if s.byCluster() && len(s.foreign()) == 0 {
		d.Failed = stays("the CronJobs of its DatabaseCluster, which know its repository, are gone")
		return d, nil
	}
	if d.Remove = s.working(); len(d.Remove) > 0 {
		return d, nil
	}
	err := s.deleteJob(&d)
	// A policy of that name with another owner was never this Backup's.
	if d.Create != nil && (s.Policy == nil || s.ours(s.Policy)) {
		d.Policy = s.policy()
	}
	return d, err
}

// mayGo reports whether the Backup may be removed at once: its backups are to be kept, or do not
// exist, or cannot be deleted any more.
func (s *State) mayGo() bool {
	switch {
	case s.params().DeletionPolicy != backupv1.Delete:
		return true
	case s.Backup.Annotations[backupv1.ReleaseAnnotation] == "true":
		return true
	case s.NamespaceGone:
		// No pod can be created in it any more.
		return true
	}
	// The backups were deleted with their volume.
	return s.Problem != nil && s.Problem.Reason == backupv1.ReasonVolumeNotFound
}

func stays(why string) error {
	return fmt.Errorf("cannot delete the backups: %s; fix it, or set annotation %s to \"true\" to let the Backup go and keep its data", why, backupv1.ReleaseAnnotation)
}

// working returns the objects that would create more backups.
func (s *State) working() []client.Object {
	var out []client.Object
	for i := range s.CronJobs {
		if s.ours(&s.CronJobs[i]) {
			out = append(out, &s.CronJobs[i])
		}
	}
	for _, r := range s.Runs {
		if !r.Ended && r.Action != backup.Delete && r.Owner == s.Backup.UID {
			out = append(out, jobOf(s.Backup, r))
		}
	}
	return out
}

// jobOf returns the Job of a run, with what is needed to delete it.
func jobOf(b *backupv1.Backup, r workload.Run) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: r.Job, UID: r.UID},
	}
}

// deleteJob decides about the Job that deletes the backups. After a failure the next one is created
// with a backoff, or at once if what it reaches has changed. A permanent failure is only retried
// after such a change.
func (s *State) deleteJob(d *Deletion) error {
	pod, err := s.template(backup.Delete)
	if err != nil {
		return err
	}
	b, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	reached := build.Digest(string(b), s.Store.Print)
	last := s.lastDelete()
	switch {
	case last == nil:
		d.Create = s.deletion(pod, reached, 1)
	case last.Succeeded(), last.Failed() && last.Failure.Reason == backup.BucketMissing:
		d.Done = true
	case !last.Ended:
		d.Failed = last.excuse()
	default:
		d.Failed = last.excuse()
		changed := last.Digest != reached
		if changed || !last.Permanent() && !s.Now.Before(last.Finished.Add(backoff(last.Attempt))) {
			d.Create = s.deletion(pod, reached, last.Attempt+1)
		}
	}
	return nil
}

// attempt is a run that deletes the backups.
type attempt struct{ workload.Run }

// excuse returns why an attempt has not succeeded, or nil while it still may.
func (a attempt) excuse() error {
	switch {
	case a.Failure != nil:
		return stays(a.Failure.Message)
	case a.PodFailure != "":
		return stays("the pod of Job " + a.Job + " " + a.PodFailure)
	}
	return nil
}

// lastDelete returns the newest attempt, or nil.
func (s *State) lastDelete() *attempt {
	var out *attempt
	for _, r := range s.Runs {
		if r.Action == backup.Delete && (out == nil || r.Attempt > out.Attempt) {
			out = &attempt{Run: r}
		}
	}
	return out
}

func (s *State) deletion(pod corev1.PodTemplateSpec, reached string, attempt int) *batchv1.Job {
	annotations := map[string]string{workload.DigestAnnotation: reached, workload.AttemptAnnotation: strconv.Itoa(attempt)}
	return workload.Job(meta(s.Backup, deleteName(s.Backup.Name, attempt), annotations), backup.Delete, pod)
}
