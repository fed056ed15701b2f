package webapp

import (
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
)

// rolloutSlack is how many seconds a rollout may take beyond a pod's start before it counts as
// stuck: a node may have to be added and an image pulled.
const rolloutSlack = 300

// deployment returns the Deployment of the pods that serve requests.
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

// isPaused reports whether a Deployment is paused, because the migration has not completed or the
// pods' ServiceAccount is not known to exist. Without the account no pod can be created, and a
// Deployment keeps reporting that until it has pods, whatever the reason is by then. It is paused
// instead of withheld, since an object that is added to a claim later costs one more generation and
// four writes to the claim. A Deployment that has had pods is not paused again.
func (l *live) isPaused(d *liveDeployment) bool {
	return !l.review && (!l.account || !l.migrated) && (!d.exists || d.Spec.Paused)
}

// rolling returns a Deployment whose rolling update adds pods before it removes old ones, so that a
// change never reduces the number of available pods.
func (a *app) rolling(component string, pod corev1.PodSpec, replicas *int32) *k8sappsv1.Deployment {
	if a.profile.HighlyAvailable {
		pod.TopologySpreadConstraints = build.Spread(a.Scope, component)
		for i := range pod.TopologySpreadConstraints {
			// Only pods of the same template are counted, or the new pods would be
			// spread around the old ones.
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

// replicas returns the number of replicas to apply to a Deployment, or nil to apply none. With
// autoscaling the field is the autoscaler's alone once it has scaled. Until then the number is
// applied, since the API server resets a field that its owner no longer applies to the default, 1.
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
