package webapp

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
)

// sidecarResources returns the resources of a sidecar for which the claim sets none.
func sidecarResources() corev1.ResourceRequirements {
	return build.Resources("20m", "32Mi", "128Mi")
}

// initContainer returns an init container. It gets the application's environment only if it runs
// the application's image: other programs must not read what the environment contains.
func (a *app) initContainer(i *appsv1.InitContainer) corev1.Container {
	c := a.container(i.Name, i.Command, i.Args)
	c.Resources = a.profile.Web
	if i.Resources != nil {
		c.Resources = *i.Resources
	}
	if i.Image != "" {
		c.Image, c.Env, c.EnvFrom = string(i.Image), i.Env, i.EnvFrom
		return c
	}
	own := func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(i.Env, func(o corev1.EnvVar) bool { return o.Name == e.Name })
	}
	c.Env = append(slices.DeleteFunc(slices.Clone(c.Env), own), i.Env...)
	c.EnvFrom = slices.Concat(c.EnvFrom, i.EnvFrom)
	return c
}

// sidecar returns an init container that keeps running: Kubernetes starts it first, and ends it
// last without waiting for it to complete.
func (a *app) sidecar(s *appsv1.Sidecar) corev1.Container {
	c := a.initContainer(&s.InitContainer)
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	if s.Resources == nil {
		c.Resources = sidecarResources()
	}
	if s.Port != nil {
		c.Ports = []corev1.ContainerPort{{Name: s.Name, ContainerPort: *s.Port}}
		c.StartupProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(*s.Port)}},
			PeriodSeconds: 1, FailureThreshold: defaultStartSeconds, TimeoutSeconds: 3,
		}
	}
	return c
}
