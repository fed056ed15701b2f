package webapp

import (
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
)

// rolloutSlack is how long a rollout may take beyond a pod's start before it
// counts as stuck: a node may have to be added and an image pulled.
const rolloutSlack = 300

// deployment of the pods that take requests.
func (a *app) deployment() *k8sappsv1.Deployment {
	c := a.container("app", a.spec.Command, a.spec.Args)
	c.Ports = a.ports()
	a.probe(&c)
	c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainSeconds}}}

	pod := a.servingPod(c)
	pod.TerminationGracePeriodSeconds = new(drainSeconds + a.grace())
	a.measured(&pod, a.spec.Autoscaling)
	d := a.rolling(web, pod, replicas(a.spec.Replicas, a.spec.Autoscaling, &a.live.liveDeployment))
	d.Spec.Paused = a.live.isPaused(&a.live.liveDeployment)
	return d
}

// isPaused reports whether a Deployment creates no pods yet, since the migration has not completed
// or their account is not known to exist: without it pods are not created, and a Deployment says
// that for as long as they are not, whatever the reason is by then. It is paused and not withheld:
// one more object of a claim later is one more generation, and four writes to the claim. One that
// has had pods is not paused again.
func (l *live) isPaused(d *liveDeployment) bool {
	return !l.review && !(l.account && l.migrated) && (!d.exists || d.Spec.Paused)
}

// rolling rolls one pod up before it takes one down, so that a change never
// lessens what serves requests.
func (a *app) rolling(component string, pod corev1.PodSpec, replicas *int32) *k8sappsv1.Deployment {
	if a.profile.HighlyAvailable {
		pod.TopologySpreadConstraints = build.Spread(a.Scope, component)
		for i := range pod.TopologySpreadConstraints {
			// Pods that are on their way out are not counted, or the new ones
			// would be spread around them.
			pod.TopologySpreadConstraints[i].MatchLabelKeys = []string{k8sappsv1.DefaultDeploymentUniqueLabelKey}
		}
		pod.Affinity = build.AntiAffinity(a.Scope, component)
	}
	build.Place(&pod, &a.spec.PodOptions)
	meta := a.Meta(component, a.name())
	meta.Labels, meta.Annotations = a.podLabels(component), a.allowance
	return &k8sappsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: meta,
		Spec: k8sappsv1.DeploymentSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: a.Selector(component)},
			Strategy: k8sappsv1.DeploymentStrategy{
				Type: k8sappsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &k8sappsv1.RollingUpdateDeployment{
					MaxUnavailable: new(intstr.FromInt32(0)),
					MaxSurge:       new(intstr.FromString("25%")),
				},
			},
			ProgressDeadlineSeconds: new(a.startSeconds() + rolloutSlack),
			RevisionHistoryLimit:    new(int32(5)),
			Template:                corev1.PodTemplateSpec{ObjectMeta: a.podMeta(component), Spec: pod},
		},
	}
}

// replicas of a Deployment. With autoscaling they are the autoscaler's alone
// from when it first scales: to apply none before would make them one, which is
// what the API server defaults a field to that its owner let go.
func replicas(fixed *int32, as *appsv1.Autoscaling, live *liveDeployment) *int32 {
	switch {
	case as != nil && live.scaledByOther:
		return nil
	case as != nil && live.Spec.Replicas != nil:
		return live.Spec.Replicas
	case as != nil:
		return as.MinReplicas
	default:
		return or(fixed, 1)
	}
}
