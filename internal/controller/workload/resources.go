package workload

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storeplane/storeplane/internal/backup"
)

// leastDisk is how much of its node's disk a pod requests, for its log and what it writes to /tmp.
const leastDisk = "64Mi"

// tmpLimit is the size limit of a volume for /tmp, and of other small volumes.
var tmpLimit = resource.MustParse("1Gi")

// scratchLimit returns how much of its node's disk a throw-away server may use: the pod's limit of
// ephemeral storage if it has one, and 10Gi otherwise. Larger databases need a volume.
func scratchLimit(asked *corev1.ResourceRequirements) resource.Quantity {
	if asked != nil {
		if own, ok := asked.Limits[corev1.ResourceEphemeralStorage]; ok {
			return own
		}
	}
	return resource.MustParse("10Gi")
}

// memory is how much memory a container requests, and its limit. A throw-away server needs more
// than a dump, which is streamed.
type memory struct{ request, limit string }

func memoryOf(a backup.Action) memory {
	switch a {
	case backup.Verify:
		return memory{request: "256Mi", limit: "1Gi"}
	case backup.Restore:
		return memory{request: "128Mi", limit: "256Mi"}
	case backup.Check, backup.Backup, backup.Delete, backup.Serve:
	}
	return memory{request: "128Mi", limit: "128Mi"}
}

// bound sets a container's resources: those that a user has set, or the defaults of the action.
func bound(c *corev1.Container, a backup.Action, asked *corev1.ResourceRequirements) {
	m := memoryOf(a)
	c.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse(m.request), corev1.ResourceEphemeralStorage: resource.MustParse(leastDisk)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(m.limit)},
	}
	if asked != nil {
		c.Resources = *asked.DeepCopy()
	}
	setEnv(c, "GOMEMLIMIT", goMemory(c.Resources.Limits))
}

// goMemory returns how many bytes of a container's memory the program itself may use. The rest is
// for the tools that it runs, and for what they read and write.
func goMemory(limits corev1.ResourceList) string {
	const most = 256 << 20
	limit, ok := limits[corev1.ResourceMemory]
	if !ok {
		return strconv.Itoa(most)
	}
	return strconv.FormatInt(min(limit.Value()/2, most), 10)
}

func setEnv(c *corev1.Container, name, value string) {
	for i := range c.Env {
		if c.Env[i].Name == name {
			c.Env[i] = corev1.EnvVar{Name: name, Value: value}
			return
		}
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
}
