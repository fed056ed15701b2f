// Package volume decides what to do about the size of a server's volume, and describes what
// keeps it from expanding.
package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Growth is what to do about the size of a volume.
type Growth struct {
	// Request is true if more storage has to be requested.
	Request bool

	// Done is true if the volume has its size.
	Done bool

	// Refused is true if the volume will not have its size until a user changes something.
	Refused bool

	// Message is why the volume will not have its size. It is empty while the volume expands.
	Message string
}

// Decide decides what to do about a volume that should have a size. Volumes never shrink.
func Decide(claim *corev1.PersistentVolumeClaim, size string) (Growth, error) {
	want, err := resource.ParseQuantity(size)
	if err != nil {
		return Growth{}, fmt.Errorf("cannot read storage %q: %w", size, err)
	}
	request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	capacity := claim.Status.Capacity[corev1.ResourceStorage]
	g := Growth{Request: request.Cmp(want) < 0, Done: capacity.Cmp(want) >= 0}
	if g.Done {
		return g, nil
	}
	if reason := failure(claim); reason != "" && !g.Request {
		g.Refused, g.Message = true, Refusal(size, reason)
	}
	return g, nil
}

// Refusal returns the message about a volume that cannot expand to a size.
func Refusal(size, reason string) string { return "cannot grow to " + size + ": " + reason }

// failure returns the message of the storage driver, or "". Older drivers set only a status.
func failure(claim *corev1.PersistentVolumeClaim) string {
	for _, c := range claim.Status.Conditions {
		broken := c.Type == corev1.PersistentVolumeClaimControllerResizeError || c.Type == corev1.PersistentVolumeClaimNodeResizeError
		if broken && c.Status == corev1.ConditionTrue && c.Message != "" {
			return c.Message
		}
	}
	state := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	if state == corev1.PersistentVolumeClaimControllerResizeInfeasible || state == corev1.PersistentVolumeClaimNodeResizeInfeasible {
		return "the storage cannot be that large"
	}
	return ""
}

// thresholds are the percentages of filling that are reported, and hysteresis is by how much
// the filling must fall below one before it is no longer reported.
var thresholds = []int{90, 80}

const hysteresis = 5

// Filling returns the highest threshold that the usage of a volume has passed, or 0, given the
// last one that was reported.
func Filling(used, size uint64, last int) int {
	if size == 0 {
		return last
	}
	percent := int(used * 100 / size) //nolint:gosec // it is at most 100
	for _, t := range thresholds {
		if percent >= t || last >= t && percent > t-hysteresis {
			return t
		}
	}
	return 0
}
