package webapp

import (
	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// validate repeats what the XRD can only check in part.
func validate(s *appsv1.WebAppSpec) error {
	if s.Image == "" {
		return compose.Invalidf("image is missing")
	}
	if a := s.Autoscaling; a != nil && a.MinReplicas != nil && *a.MinReplicas > a.MaxReplicas {
		return compose.Invalidf("autoscaling.minReplicas must not be more than autoscaling.maxReplicas: %d, %d", *a.MinReplicas, a.MaxReplicas)
	}
	for _, j := range s.CronJobs {
		if err := build.CheckSchedule(j.Schedule, j.TimeZone); err != nil {
			return compose.Invalidf("cronJobs %s: %v", j.Name, err)
		}
	}
	return nil
}
