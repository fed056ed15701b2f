// Package volume decides what to do about the size of a server's volume, and
// says in words what keeps it from growing.
package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Growth of a volume.
type Growth struct {
	// Request says that more has to be asked for.
	Request bool

	// Done says that the volume has its size.
	Done bool

	// Refused says that it will not have it until somebody does something.
	Refused bool

	// Words say why it will not. There are none while it grows.
	Words string
}

// Decide on a volume that should be of a size. Volumes never shrink.
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
		g.Refused, g.Words = true, Refusal(size, reason)
	}
	return g, nil
}

// Refusal in words.
func Refusal(size, reason string) string { return "cannot grow to " + size + ": " + reason }

// failure of the storage's driver, in its words. Older ones only say what they
// are up to.
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

// Thresholds of filling that are told, and by how much it must fall below one
// to be told no more.
var thresholds = []int{90, 80}

const hysteresis = 5

// Filling of a volume as a threshold that was passed, given what was told last.
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
