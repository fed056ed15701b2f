package webapp

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/internal/build"
)

// drainSeconds is how long a pod that is going away still answers. Endpoints
// are taken out of every node's tables meanwhile, so that no request is sent
// to a closed port.
const drainSeconds = 5

// container runs the application's image with its environment.
func (a *app) container(name string, command, args []string) corev1.Container {
	c := corev1.Container{
		Name:            name,
		Image:           string(a.spec.Image),
		Command:         command,
		Args:            args,
		Env:             a.env(),
		EnvFrom:         a.envFrom(),
		Resources:       a.profile.Web,
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
	}
	if a.spec.Resources != nil {
		c.Resources = *a.spec.Resources
	}
	return c
}

// env puts PORT first, so that the claim's own environment may refer to it or
// replace it.
func (a *app) env() []corev1.EnvVar {
	if slices.ContainsFunc(a.spec.Env, func(e corev1.EnvVar) bool { return e.Name == "PORT" }) {
		return a.spec.Env
	}
	port := corev1.EnvVar{Name: "PORT", Value: strconv.Itoa(int(*a.port()))}
	return append([]corev1.EnvVar{port}, a.spec.Env...)
}

func (a *app) envFrom() []corev1.EnvFromSource {
	return build.EnvFrom(a.config.Bundle(), a.spec.EnvFrom)
}

// pod of one container.
func (a *app) pod(c corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName:           a.Name(web),
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              build.PodSecurity(0, 0),
		Containers:                   []corev1.Container{c},
		Volumes:                      []corev1.Volume{build.Scratch("tmp", corev1.StorageMediumDefault)},
	}
}

// ready is the request that tells whether a pod takes requests: the claim's
// path, else any connection to its port.
func (a *app) ready() corev1.ProbeHandler {
	port := intstr.FromString("http")
	p := a.spec.Probe
	if p != nil && p.Port != nil {
		port = intstr.FromInt32(*p.Port)
	}
	if p != nil && p.Path != "" {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: p.Path, Port: port}}
	}
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
}
