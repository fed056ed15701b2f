package webapp

import (
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/internal/build"
)

// deployment rolls one pod up before it takes one down, so that a change never
// lessens what serves requests.
func (a *app) deployment() *k8sappsv1.Deployment {
	c := a.container("app", a.spec.Command, a.spec.Args)
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: *a.port()}}
	c.StartupProbe = &corev1.Probe{ProbeHandler: a.ready(), PeriodSeconds: 1, FailureThreshold: 300, TimeoutSeconds: 3}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: a.ready(), PeriodSeconds: 5, FailureThreshold: 2, TimeoutSeconds: 3}
	// A dependency that is down must not restart the pods, so liveness only
	// asks whether the process still accepts connections.
	c.LivenessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}},
		PeriodSeconds: 10, FailureThreshold: 6, TimeoutSeconds: 3,
	}
	c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainSeconds}}}

	pod := a.pod(c)
	pod.TerminationGracePeriodSeconds = new(int64(drainSeconds + 30))
	if a.profile.HighlyAvailable {
		pod.TopologySpreadConstraints = build.Spread(a.Scope, web)
		pod.Affinity = build.AntiAffinity(a.Scope, web)
	}
	d := &k8sappsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: a.Meta(web, a.name()),
		Spec: k8sappsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: a.Selector(web)},
			Strategy: k8sappsv1.DeploymentStrategy{
				Type: k8sappsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &k8sappsv1.RollingUpdateDeployment{
					MaxUnavailable: new(intstr.FromInt32(0)),
					MaxSurge:       new(intstr.FromString("25%")),
				},
			},
			RevisionHistoryLimit: new(int32(5)),
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: a.Labels(web, a.name())}, Spec: pod},
		},
	}
	d.Spec.Replicas = a.replicas()
	return d
}

// replicas of the Deployment. With autoscaling they are the autoscaler's alone
// from when it first scales: to apply none before would make them one, which is
// what the API server defaults a field to that its owner let go.
func (a *app) replicas() *int32 {
	switch {
	case a.spec.Autoscaling != nil && a.live.scaledByOther:
		return nil
	case a.spec.Autoscaling != nil && a.live.Spec.Replicas != nil:
		return a.live.Spec.Replicas
	case a.spec.Autoscaling != nil:
		return a.spec.Autoscaling.MinReplicas
	case a.spec.Replicas != nil:
		return a.spec.Replicas
	default:
		return new(int32(1))
	}
}
