package webapp

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/label"
)

const (
	// drainSeconds is how long a pod that is being deleted continues to serve. Meanwhile its
	// endpoint is removed on every node, so that no request is sent to a closed port.
	drainSeconds = 5

	// graceSeconds is how long the application then has to end, unless the claim sets
	// terminationGracePeriodSeconds.
	graceSeconds = 30
)

// container returns a container that runs the application's image with its environment.
func (a *app) container(name string, command, args []string) corev1.Container {
	c := corev1.Container{
		Name:            name,
		Image:           string(a.spec.Image),
		Command:         command,
		Args:            args,
		Env:             a.env(),
		EnvFrom:         a.envFrom(),
		Resources:       a.profile.Web,
		SecurityContext: a.containerSecurity(),
		VolumeMounts:    a.mounts(),
		// The claim's status reports why the container ended.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
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

// servingPod returns a pod that runs until it is replaced. Its sidecars come before the init
// containers, which may need them.
func (a *app) servingPod(c corev1.Container) corev1.PodSpec {
	pod := a.pod(c)
	for i := range a.spec.InitContainers {
		pod.InitContainers = append(pod.InitContainers, a.initContainer(&a.spec.InitContainers[i]))
	}
	return pod
}

// jobPod returns a pod that runs to completion. It has no init containers, since these
// prepare pods that serve.
func (a *app) jobPod(c corev1.Container) corev1.PodSpec {
	pod := a.pod(c)
	pod.RestartPolicy = corev1.RestartPolicyNever
	build.Place(&pod, &a.spec.PodOptions)
	return pod
}

// pod returns a pod with one container and the sidecars.
func (a *app) pod(c corev1.Container) corev1.PodSpec {
	pod := corev1.PodSpec{
		ServiceAccountName:           a.Name(web),
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              a.podSecurity(),
		Containers:                   []corev1.Container{c},
		Volumes:                      a.volumes(c.Resources.Limits),
		ImagePullSecrets:             a.spec.ImagePullSecrets,
	}
	for i := range a.spec.Sidecars {
		pod.InitContainers = append(pod.InitContainers, a.sidecar(&a.spec.Sidecars[i]))
	}
	return pod
}

// podLabels returns the labels of a component's pods. They include the application's version, if
// the image has a tag for it; no selector uses that label.
func (a *app) podLabels(component string) map[string]string {
	labels := a.Labels(component, a.name())
	if v := build.Version(string(a.spec.Image)); v != "" {
		labels[label.Version] = v
	}
	return labels
}

// podMeta returns the metadata of a component's pods.
func (a *app) podMeta(component string) metav1.ObjectMeta {
	return build.PodMeta(a.podLabels(component), nil, &a.spec.PodOptions)
}

func (a *app) grace() int64 { return *or(a.spec.TerminationGracePeriodSeconds, graceSeconds) }

// or returns a value of the claim, or its default if the claim has none.
func or[T any](own *T, def T) *T {
	if own != nil {
		return own
	}
	return &def
}
