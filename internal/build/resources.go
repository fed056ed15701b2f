package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// leastDisk is what a container asks for of its node's disk, for its log and what it writes
// to a Scratch.
const leastDisk = "64Mi"

// Resources of a container, as quantities. Memory has a limit, which cannot be taken back
// from a pod. CPU, which can, has none: a limit there only adds latency.
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
