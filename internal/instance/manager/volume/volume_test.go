package volume

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func claim(request, capacity string, changes ...func(*corev1.PersistentVolumeClaimStatus)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(request)}
	if capacity != "" {
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	}
	for _, change := range changes {
		change(&c.Status)
	}
	return c
}

func TestDecide(t *testing.T) {
	infeasible := func(s *corev1.PersistentVolumeClaimStatus) {
		s.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
			corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible,
		}
	}
	failed := func(s *corev1.PersistentVolumeClaimStatus) {
		s.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue, Message: "the disk is broken",
		}}
	}
	cases := map[string]struct {
		reason string
		claim  *corev1.PersistentVolumeClaim
		size   string
		want   Growth
	}{
		"Same":       {reason: "It has its size", claim: claim("10Gi", "10Gi"), size: "10Gi", want: Growth{Done: true}},
		"OtherWords": {reason: "Sizes are compared, not texts", claim: claim("10Gi", "10Gi"), size: "10240Mi", want: Growth{Done: true}},
		"Larger":     {reason: "A volume never shrinks", claim: claim("20Gi", "20Gi"), size: "10Gi", want: Growth{Done: true}},
		"Rounded":    {reason: "Storage may give more than was asked for", claim: claim("10Gi", "16Gi"), size: "10Gi", want: Growth{Done: true}},
		"Grow":       {reason: "More is asked for", claim: claim("10Gi", "10Gi"), size: "20Gi", want: Growth{Request: true}},
		"Growing":    {reason: "It is asked for once", claim: claim("20Gi", "10Gi"), size: "20Gi", want: Growth{}},
		"Unbound":    {reason: "A volume without capacity is not there yet", claim: claim("20Gi", ""), size: "20Gi", want: Growth{}},
		"Infeasible": {reason: "The storage cannot", claim: claim("20Gi", "10Gi", infeasible), size: "20Gi", want: Growth{Refused: true, Message: "cannot grow to 20Gi: the storage cannot be that large"}},
		"Failed":     {reason: "The storage's own words are best", claim: claim("20Gi", "10Gi", infeasible, failed), size: "20Gi", want: Growth{Refused: true, Message: "cannot grow to 20Gi: the disk is broken"}},
		"FailedOnce": {reason: "An old failure is none of the new size's", claim: claim("20Gi", "10Gi", failed), size: "30Gi", want: Growth{Request: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decide(tc.claim, tc.size)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: Decide(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := Decide(claim("1Gi", "1Gi"), "much"); err == nil {
		t.Error("Decide(...): want an error for a size that is none")
	}
}

func TestFilling(t *testing.T) {
	cases := map[string]struct {
		reason     string
		used, size uint64
		last, want int
	}{
		"Empty":      {reason: "There is room", used: 10, size: 100},
		"Below":      {reason: "There is just room", used: 79, size: 100},
		"Eighty":     {reason: "The first threshold", used: 80, size: 100, want: 80},
		"Ninety":     {reason: "The second", used: 95, size: 100, last: 80, want: 90},
		"Stays":      {reason: "It must fall well below to be told no more", used: 76, size: 100, last: 80, want: 80},
		"Falls":      {reason: "It has", used: 75, size: 100, last: 80},
		"StaysHigh":  {reason: "The same above", used: 86, size: 100, last: 90, want: 90},
		"FallsABit":  {reason: "From the second to the first", used: 85, size: 100, last: 90, want: 80},
		"FallsDeep":  {reason: "From the second past the hysteresis of the first", used: 77, size: 100, last: 90, want: 80},
		"FallsAway":  {reason: "From the second to none", used: 10, size: 100, last: 90},
		"NoSize":     {reason: "What cannot be seen does not change", last: 80, want: 80},
		"LargeDisks": {reason: "Hundreds of terabytes do not overflow", used: 900 << 40, size: 1000 << 40, want: 90},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Filling(tc.used, tc.size, tc.last); got != tc.want {
				t.Errorf("%s: Filling(%d, %d, %d): got %d, want %d", tc.reason, tc.used, tc.size, tc.last, got, tc.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	used, size, err := Usage(t.TempDir())
	if err != nil || size == 0 || used > size {
		t.Errorf("Usage(): got %d of %d, %v", used, size, err)
	}
}
