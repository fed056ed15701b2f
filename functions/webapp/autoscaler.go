package webapp

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
)

// autoscaler returns the HorizontalPodAutoscaler of a component's Deployment, which
// has the component's name.
func (a *app) autoscaler(component string, as *appsv1.Autoscaling) *autoscalingv2.HorizontalPodAutoscaler {
	return build.Autoscaler(a.Meta(component, a.name()), a.Name(component), as)
}

// measured adds the resource requests that an autoscaled pod lacks to its containers and sidecars:
// the autoscaler measures their use relative to requests, and never scales pods in which one is
// missing. It does nothing without autoscaling.
func (a *app) measured(pod *corev1.PodSpec, as *appsv1.Autoscaling) {
	if as == nil {
		return
	}
	for i := range pod.Containers {
		build.Measured(&pod.Containers[i], as, a.profile.Web.Requests)
	}
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; c.RestartPolicy != nil {
			build.Measured(c, as, sidecarResources().Requests)
		}
	}
}
