package build

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// startWindow is how long after an edit the requested pods are read again every two seconds.
const startWindow = 15 * time.Second

// AwaitDeployment returns what keeps the pods of the Deployment of a name from becoming ready. Pods
// are requested only while some are not ready, and not before grace has passed since the last
// progress, unless the claim's status already reports a pod failure: Crossplane watches what is
// requested, and each pod that starts causes a dozen events. lift returns what to set in the claim
// because of a failure, or "". It may be nil.
func AwaitDeployment(c *compose.Claim, name string, status *k8sappsv1.DeploymentStatus, grace time.Duration, lift func(*podfailure.Failure) string) health.Wait {
	for _, cond := range status.Conditions {
		if cond.Type == k8sappsv1.DeploymentReplicaFailure && cond.Status == corev1.ConditionTrue {
			return health.Wait{Message: podfailure.Uncreated(cond.Message), Lasting: true}
		}
	}
	if status.UnavailableReplicas == 0 && status.ReadyReplicas == status.Replicas && status.UpdatedReplicas == status.Replicas && status.Replicas > 0 {
		return health.Wait{}
	}
	if left := graceLeft(c, status, grace); left > 0 && c.PodFailure() == "" {
		c.RequeueWithin(left + 500*time.Millisecond)
		return health.Wait{}
	}
	if age, known := c.NotReadyFor(); known && age < startWindow {
		// A change between this response and the start of Crossplane's watch
		// on pods causes no event.
		c.RequeueWithin(2 * time.Second)
	}
	return AwaitPods(c, name, ScopeOf(c).Selector(name), lift)
}

// graceLeft returns what is left of the grace of a rollout. Nothing is left of it once the rollout
// has exceeded its deadline, since such a rollout makes no progress.
func graceLeft(c *compose.Claim, status *k8sappsv1.DeploymentStatus, grace time.Duration) time.Duration {
	for _, cond := range status.Conditions {
		// It is Unknown while the Deployment is paused, and right after it was resumed.
		if cond.Type == k8sappsv1.DeploymentProgressing && cond.Status != corev1.ConditionFalse && !c.Now().IsZero() {
			return grace - c.Now().Sub(cond.LastUpdateTime.Time)
		}
	}
	if age, known := c.NotReadyFor(); known && len(status.Conditions) == 0 {
		return grace - age // Its controller has not seen it yet.
	}
	return 0
}

// AwaitPods returns what the pods with some labels wait for. They are requested under that name,
// and Crossplane watches what is requested. lift is as for AwaitDeployment.
func AwaitPods(c *compose.Claim, name string, labels map[string]string, lift func(*podfailure.Failure) string) health.Wait {
	namespace := c.Namespace()
	pods, _ := c.Require("pods-"+name, &fnv1.ResourceSelector{
		ApiVersion: "v1", Kind: "Pod", Namespace: &namespace,
		Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: labels}},
	})
	w := health.Waiting(pods, c.Now(), lift)
	switch {
	case w.Due > 0:
		c.RequeueWithin(w.Due + 500*time.Millisecond)
	case w.Message != "" && !w.Lasting:
		c.RequeueWithin(health.LastsAfter)
	}
	return w
}
