package webapp

import (
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
)

func workerComponent(w *appsv1.Worker) string { return worker + "-" + w.Name }

// workerComponents returns a worker's Deployment and the objects around it. The Deployment rolls
// out after the migration, as the pods that serve requests do.
func (a *app) workerComponents(w *appsv1.Worker, after, gates, changeAfter []string) []compose.Component {
	name := workerComponent(w)
	l := a.live.workers[w.Name]
	if l.Spec.Paused {
		changeAfter = gates // The start of a paused Deployment is no change of the configuration.
	}
	deployment := compose.Component{Name: name, Paused: a.live.isPaused(&l), Make: func() compose.Object { return a.workerDeployment(w) }, After: after, ChangeAfter: changeAfter, Health: l.judged(health.Of)}
	// The names of the other components begin with their kinds, since a worker may have any name.
	out := []compose.Component{{Name: policy + "-" + name, Part: name, Object: build.NetworkPolicy(a.Scope, name, a.name())}}
	if w.Autoscaling != nil {
		deployment.Health, deployment.Scaled = l.judged(health.Available), true
		out = append(out, compose.Component{
			Name: scaler + "-" + name, Part: name, After: []string{name},
			Make: func() compose.Object { return a.autoscaler(name, w.Autoscaling) },
		})
	}
	if a.profile.HighlyAvailable {
		out = append(out, compose.Component{Name: budget + "-" + name, Part: name, Object: build.DisruptionBudget(a.Scope, name, a.name())})
	}
	return append([]compose.Component{deployment}, out...)
}

func (a *app) workerDeployment(w *appsv1.Worker) *k8sappsv1.Deployment {
	c := a.container(worker, w.Command, w.Args)
	if w.Resources != nil {
		c.Resources = *w.Resources
	}
	if w.Probe != nil {
		c.LivenessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: w.Probe.Command}},
			PeriodSeconds: 10, FailureThreshold: 6, TimeoutSeconds: 5,
		}
	}
	pod := a.servingPod(c)
	pod.TerminationGracePeriodSeconds = new(a.grace())
	a.measured(&pod, w.Autoscaling)
	l := a.live.workers[w.Name]
	d := a.rolling(workerComponent(w), pod, replicas(w.Replicas, w.Autoscaling, &l))
	d.Spec.Paused = a.live.isPaused(&l)
	return d
}

// observeWorkers returns the Deployments of the workers that exist, by the workers' names.
func observeWorkers(c *compose.Claim, workers []appsv1.Worker) (map[string]liveDeployment, error) {
	out := map[string]liveDeployment{}
	for i := range workers {
		l, ok, err := observeDeployment(c, workerComponent(&workers[i]))
		if err != nil {
			return nil, err
		}
		if ok {
			out[workers[i].Name] = l
		}
	}
	return out, nil
}

// workerStatus returns the status of each worker of the claim that exists, in the claim's order.
func (a *app) workerStatus() []appsv1.WorkerStatus {
	var out []appsv1.WorkerStatus
	for _, w := range a.spec.Workers {
		if l, ok := a.live.workers[w.Name]; ok {
			out = append(out, appsv1.WorkerStatus{Name: w.Name, AvailableReplicas: l.Status.AvailableReplicas})
		}
	}
	return out
}
