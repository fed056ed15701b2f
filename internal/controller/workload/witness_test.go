package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestWitness: the report of a pod that was deleted as it ended still counts.
func TestWitness(t *testing.T) {
	complete := job(is(batchv1.JobComplete, ""))
	complete.UID = "job"
	ended := pod(0, corev1.PodSucceeded, exit(0, "Completed", good))
	ended.UID = "pod"
	cases := map[string]struct {
		reason string
		see    []corev1.Pod
		there  []corev1.Pod
		later  time.Duration
		want   *backup.Failure
	}{
		"Unseen":  {reason: "What was not reported is not known to have happened.", want: &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}},
		"There":   {reason: "A pod that is there speaks for itself, once.", see: []corev1.Pod{ended}, there: []corev1.Pod{ended}},
		"Gone":    {reason: "One that is gone was heard.", see: []corev1.Pod{ended}},
		"Running": {reason: "One that was gone before its end was not.", see: []corev1.Pod{pod(0, corev1.PodRunning, nil)}, want: &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}},
		"LongAgo": {reason: "No reader of a report is that late.", see: []corev1.Pod{ended, other()}, later: 2 * remembered, want: &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := noon
			w := NewWitness(func() time.Time { return now })
			for i := range tc.see {
				w.See(&tc.see[i])
				now = now.Add(tc.later)
			}
			jobs := []batchv1.Job{complete}
			runs := Runs(jobs, w.With(jobs, tc.there), late)
			if diff := cmp.Diff(tc.want, runs[0].Failure); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// other returns a pod of another Job.
func other() corev1.Pod {
	p := pod(1, corev1.PodSucceeded, exit(0, "Completed", good))
	p.UID = "other"
	p.OwnerReferences[0].UID = "other"
	return p
}
