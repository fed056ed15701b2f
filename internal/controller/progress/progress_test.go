package progress_test

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/controller/progress"
)

func TestReport(t *testing.T) {
	type want struct {
		Stalled    string
		Generation int64
		Kstatus    status.Status
	}
	cases := map[string]struct {
		reason        string
		ready         xpv2.Condition
		stalled, done bool
		want          want
	}{
		"Ready":    {reason: "All of the newest generation was carried out.", ready: xpv2.Available(), done: true, want: want{Stalled: "False NotStalled", Generation: 2, Kstatus: status.CurrentStatus}},
		"NotDone":  {reason: "An object is Ready for its older generation until the newest is carried out.", ready: xpv2.Available(), want: want{Stalled: "False NotStalled", Generation: 1, Kstatus: status.InProgressStatus}},
		"Unready":  {reason: "What is waited for comes by itself.", ready: xpv2.Unavailable(), done: true, want: want{Stalled: "False NotStalled", Generation: 1, Kstatus: status.InProgressStatus}},
		"Stalled":  {reason: "It does not: for the reason that Ready has.", ready: xpv2.Unavailable().WithMessage("x"), stalled: true, want: want{Stalled: "True Unavailable x", Generation: 2, Kstatus: status.FailedStatus}},
		"Serves":   {reason: "One that is Ready is not stalled.", ready: xpv2.Available(), stalled: true, done: true, want: want{Stalled: "False NotStalled", Generation: 2, Kstatus: status.CurrentStatus}},
		"NoReady":  {reason: "Before the first condition there is nothing to say.", want: want{Stalled: "False NotStalled", Generation: 1, Kstatus: status.InProgressStatus}},
		"Creating": {reason: "Creation goes on by itself.", ready: xpv2.Creating(), done: true, want: want{Stalled: "False NotStalled", Generation: 1, Kstatus: status.InProgressStatus}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &backupv1.Restore{TypeMeta: metav1.TypeMeta{APIVersion: backupv1.GroupVersion.String(), Kind: backupv1.RestoreKind}, ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			r.Status.ObservedGeneration = 1
			if tc.ready.Type != "" {
				r.SetConditions(tc.ready)
			}
			progress.Report(r, tc.stalled, tc.done)
			u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
			if err != nil {
				t.Fatal(err)
			}
			k, err := status.Compute(&unstructured.Unstructured{Object: u})
			if err != nil {
				t.Fatal(err)
			}
			c := r.GetCondition(progress.TypeStalled)
			got := want{Stalled: string(c.Status) + " " + string(c.Reason), Generation: r.Status.ObservedGeneration, Kstatus: k.Status}
			if c.Message != "" {
				got.Stalled += " " + c.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse {
				t.Errorf("%s\nStalled is %q", tc.reason, c.Status)
			}
		})
	}
}
