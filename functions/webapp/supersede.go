package webapp

import (
	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
)

// supersededAnnotation marks a migration that was suspended since the claim asked
// for another one. What a person suspended does not have it.
const supersededAnnotation = "storeplane.example.com/superseded"

// superseded is the Job of a migration that the claim no longer asks for and that
// has not ended. It is declared until it has, since two migrations of one database
// must not run at once.
type superseded struct {
	component string
	job       batchv1.Job
}

// observeMigrations reads the unfinished Jobs of migrations that the claim no
// longer asks for. Of the one that it asks for, it returns the Job if that was
// suspended while another one was asked for.
func observeMigrations(c *compose.Claim, wanted string) (others []superseded, suspended *batchv1.Job, err error) {
	for _, name := range c.ObservedComponents(migration + "-") {
		observed := c.Observed(name)
		if name == wanted && !isSuperseded(observed) || name != wanted && hasEnded(observed) {
			continue
		}
		m := superseded{component: name}
		if _, err := c.ReadObserved(name, &m.job); err != nil {
			return nil, nil, err
		}
		if name == wanted {
			suspended = &m.job
			continue
		}
		others = append(others, m)
	}
	return others, suspended, nil
}

func isSuperseded(job *structpb.Struct) bool {
	return job.GetFields()["metadata"].GetStructValue().GetFields()["annotations"].GetStructValue().GetFields()[supersededAnnotation].GetStringValue() != ""
}

// hasEnded tells whether no pod of a migration's Job runs, or ever will: it has
// completed, has failed for good, or was suspended and its pods are gone.
func hasEnded(job *structpb.Struct) bool {
	if health.IsBeingDeleted(job) {
		return false
	}
	if s := health.Of(job); s.IsHealthy() || s.State == health.Failed {
		return true
	}
	status := job.GetFields()["status"].GetStructValue().GetFields()
	pods := status["active"].GetNumberValue() + status["terminating"].GetNumberValue()
	suspend := job.GetFields()["spec"].GetStructValue().GetFields()["suspend"].GetBoolValue()
	return suspend && pods == 0 && isTrue(status["conditions"], string(batchv1.JobSuspended))
}

// isTrue tells whether a condition of a list is.
func isTrue(conditions *structpb.Value, typ string) bool {
	for _, v := range conditions.GetListValue().GetValues() {
		if f := v.GetStructValue().GetFields(); f["type"].GetStringValue() == typ {
			return f["status"].GetStringValue() == string(corev1.ConditionTrue)
		}
	}
	return false
}

// declared until it has ended. One that runs is left alone. One of which no pod
// runs now, for example since its image cannot be pulled, is suspended: it starts
// no pod any more, and what is asked for need not wait for its deadline.
func (m *superseded) declared() compose.Component {
	c := compose.Component{Name: m.component, Part: migration, Object: &m.job, Once: true, Health: m.health}
	if ready := m.job.Status.Ready; ready == nil || *ready == 0 {
		c.Object, c.Once = suspend(&m.job, true), false
	}
	return c
}

// health of what is only waited for.
func (m *superseded) health(*structpb.Struct) health.Status {
	name, image := m.job.Name, ""
	if cs := m.job.Spec.Template.Spec.Containers; len(cs) > 0 {
		image = cs[0].Image
	}
	return health.Status{State: health.Progressing, Message: "Job " + name + " of image " + image +
		" has not ended, and the change follows once it has: to give it up, kubectl delete job/" + name + " --cascade=foreground"}
}

// suspend a Job that exists, or have it go on.
func suspend(job *batchv1.Job, suspended bool) *batchv1.Job {
	out := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace, Labels: job.Labels},
		Spec:       *job.Spec.DeepCopy(),
	}
	out.Spec.Suspend = &suspended
	if suspended {
		out.Annotations = map[string]string{supersededAnnotation: "true"}
	}
	return out
}
