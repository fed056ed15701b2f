package webapp

import (
	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/profile"
)

// maxReplicas without an environment are those of production: who asks for more
// must say that it is for no customers.
func maxReplicas(s *appsv1.WebAppSpec, p *profile.Profile) int32 {
	if s.Environment == "" {
		return profile.Of(appsv1.Production).MaxReplicas
	}
	return p.MaxReplicas
}

// validate repeats what the XRD checks, for what slips by it, and adds what
// only a parser can tell.
func validate(s *appsv1.WebAppSpec, p *profile.Profile) error {
	if s.Image == "" {
		return compose.Invalidf("image is missing")
	}
	if err := build.CheckReplicas("", "", s.Replicas, s.Autoscaling, maxReplicas(s, p)); err != nil {
		return compose.Invalidf("%v", err)
	}
	if err := build.CheckConfig(s.Config); err != nil {
		return err
	}
	for _, j := range s.CronJobs {
		if err := build.CheckSchedule(j.Schedule, j.TimeZone); err != nil {
			return compose.Invalidf("cronJobs %s: %v", j.Name, err)
		}
	}
	return nil
}
