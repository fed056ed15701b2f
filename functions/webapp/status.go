package webapp

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// live is the part of the observed objects that the function reads.
type live struct {
	liveDeployment

	// observed is the Deployment, or nil.
	observed *structpb.Struct

	workers  map[string]liveDeployment
	cronJobs map[string]liveCronJob

	// superseded are the migrations that the claim no longer declares and that have not
	// ended. suspended is the Job of the declared migration, if that was suspended while
	// another one was declared.
	superseded []superseded
	suspended  *batchv1.Job

	// migrationWaits is what keeps the migration's pods from running, or why they failed.
	migrationWaits health.Wait

	// account is true once the pods' ServiceAccount exists. migrated is true once the migration has
	// completed, or if there is none.
	account, migrated bool

	// serves is true if the Deployment exists and is healthy, as it was declared last.
	serves bool

	// review is true for an offline review, whose result is read by people.
	review bool

	// portNameTaken is true while an entry of the Service that belongs to another field manager has
	// the name portName and another port.
	portNameTaken bool
}

// liveDeployment is the part of an observed Deployment that the function reads.
type liveDeployment struct {
	Spec struct {
		Replicas *int32 `json:"replicas"`
		Paused   bool   `json:"paused"`
		Template struct {
			Spec struct {
				Containers []struct {
					Image   string                 `json:"image"`
					EnvFrom []corev1.EnvFromSource `json:"envFrom"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status k8sappsv1.DeploymentStatus `json:"status"`

	exists bool

	// scaledByOther is true once another field manager has set the number of replicas.
	scaledByOther bool

	// waits is what keeps its pods from becoming ready.
	waits health.Wait
}

// judged returns a function that judges a Deployment by another one, and adds
// the message about its pods.
func (l *liveDeployment) judged(by func(*structpb.Struct) health.Status) func(*structpb.Struct) health.Status {
	return func(deployment *structpb.Struct) health.Status { return by(deployment).Because(l.waits.Message) }
}

// progressGrace is how long a rollout may make no progress before its pods are requested.
const progressGrace = 3 * time.Second

func observe(c *compose.Claim, s *appsv1.WebAppSpec, migration string, port int32) (live, error) {
	l := live{account: c.IsComposed(account), review: c.IsReview(), observed: c.Observed(web)}
	job := c.Observed(migration)
	l.migrated = s.Migration == nil || job != nil && health.Of(job).IsHealthy()
	var err error
	if l.liveDeployment, _, err = observeDeployment(c, web); err != nil {
		return l, err
	}
	if l.workers, err = observeWorkers(c, s.Workers); err != nil {
		return l, err
	}
	if l.cronJobs, err = observeCronJobs(c, s.CronJobs); err != nil {
		return l, err
	}
	if l.superseded, l.suspended, err = observeMigrations(c, migration); err != nil {
		return l, err
	}
	if l.migrationWaits, err = migrationWaitsFor(c, migration); err != nil {
		return l, err
	}
	l.portNameTaken, err = portNameTaken(c, port)
	return l, err
}

// observeDeployment reads the Deployment of a component, and reports whether there is one.
func observeDeployment(c *compose.Claim, component string) (liveDeployment, bool, error) {
	l := liveDeployment{}
	ok, err := c.ReadObserved(component, &l)
	if err != nil {
		return l, ok, err
	}
	l.exists = ok
	l.scaledByOther = c.OwnedByOther(component, "f:spec", "f:replicas")
	// A paused Deployment without pods gets none.
	isHeld := l.Spec.Paused && l.Status.Replicas == 0
	if ok && !isHeld && (l.Spec.Replicas == nil || *l.Spec.Replicas > 0) {
		l.waits = build.AwaitDeployment(c, component, &l.Status, progressGrace, (*podfailure.Failure).Lift)
	}
	return l, ok, nil
}

// bundle returns the bundle of the claim's config that the pods run, or "".
func (l *liveDeployment) bundle(s build.Scope) string {
	for _, c := range l.Spec.Template.Spec.Containers {
		if b := build.BundleIn(s, c.EnvFrom); b != "" {
			return b
		}
	}
	return ""
}

// podFailure returns the first reason that keeps pods from running and does
// not pass by itself, or "".
func (a *app) podFailure() string {
	waits := []health.Wait{a.live.migrationWaits, a.live.waits}
	for _, w := range a.spec.Workers {
		waits = append(waits, a.live.workers[w.Name].waits)
	}
	for _, w := range waits {
		if w.Lasting {
			return w.Message
		}
	}
	return ""
}

func (a *app) status(o compose.Outcome) *appsv1.WebAppStatus {
	o.Common.PodFailure = a.podFailure()
	s := &appsv1.WebAppStatus{
		CommonStatus:      o.Common,
		Phase:             appsv1.WebAppPhase(o.Phase),
		Endpoint:          URL(a.Claim, a.Namespace, *a.port()),
		Replicas:          a.live.Status.Replicas,
		Selector:          labels.FormatLabels(a.Selector(web)),
		AvailableReplicas: a.live.Status.AvailableReplicas,
		Config:            a.config.Status(o),
		CronJobs:          a.cronJobStatus(),
		Workers:           a.workerStatus(),
	}
	if cs := a.live.Spec.Template.Spec.Containers; len(cs) > 0 {
		s.Image = cs[0].Image
	}
	if a.spec.Ingress != nil {
		s.URL = build.IngressURL(*a.spec.Ingress)
	}
	return s
}
