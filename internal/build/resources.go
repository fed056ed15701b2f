package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// leastDisk is the ephemeral storage that a container requests, for its log and what it writes to a
// Scratch.
const leastDisk = "64Mi"

// Resources returns the resources of a container, from quantities. Memory has a limit, since memory
// cannot be taken back from a pod. CPU can, and has no limit, which would only add latency.
func Resources(cpu, memory, memoryLimit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse(cpu),
			corev1.ResourceMemory:           resource.MustParse(memory),
			corev1.ResourceEphemeralStorage: resource.MustParse(leastDisk),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memoryLimit)},
	}
}
