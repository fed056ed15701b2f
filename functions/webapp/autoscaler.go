package webapp

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
)

// autoscaler of a component's Deployment, which has the component's name.
func (a *app) autoscaler(component string, as *appsv1.Autoscaling) *autoscalingv2.HorizontalPodAutoscaler {
	return build.Autoscaler(a.Meta(component, a.name()), a.Name(component), as)
}
