package build

import (
	"fmt"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// CheckReplicas returns an error for a number of pods, fixed or autoscaled, that is out of bounds.
// prefix is the path of the tier, like "frontend."; where is what the bound belongs to, like " in
// production".
func CheckReplicas(prefix, where string, replicas *int32, a *appsv1.Autoscaling, most int32) error {
	if replicas != nil && (*replicas < 1 || *replicas > most) {
		return fmt.Errorf("%sreplicas must be 1 to %d%s, is %d", prefix, most, where, *replicas)
	}
	if a == nil {
		return nil
	}
	if a.MaxReplicas < 1 || a.MaxReplicas > most {
		return fmt.Errorf("%sautoscaling.maxReplicas must be 1 to %d%s, is %d", prefix, most, where, a.MaxReplicas)
	}
	return CheckAutoscaling(prefix, a)
}
