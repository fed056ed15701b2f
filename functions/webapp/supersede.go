package webapp

import (
	"fmt"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/label"
	"github.com/storeplane/storeplane/internal/structs"
)

// supersededAnnotation marks the Job of a migration that was suspended because the claim declares
// another one. A Job that a user suspended does not have it.
const supersededAnnotation = "storeplane.example.com/superseded"

// superseded is the Job of a migration that the claim no longer declares and that has not ended. It
// is applied until it has ended, since two migrations of one database must not run at once.
type superseded struct {
	component string
	job       batchv1.Job
}

// observeMigrations returns the unfinished Jobs of migrations that the claim no longer declares,
// and the Job of the declared one if that was suspended while another one was declared.
func observeMigrations(c *compose.Claim, wanted string) (others []superseded, suspended *batchv1.Job, err error) {
	if wanted != "" && len(c.ObservedComponents(migration+"-")) == 0 {
		if others, err = leftMigrations(c, wanted); err != nil {
			return nil, nil, err
		}
	}
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

// leftMigrations returns the unfinished Jobs that an earlier claim of this name has left, such as one
// that was deleted with --cascade=orphan: this claim adopts them. It requires them once, before the
// first migration of the claim.
func leftMigrations(c *compose.Claim, wanted string) ([]superseded, error) {
	labels := build.ScopeOf(c).Selector(migration)
	labels[label.ManagedBy] = label.Storeplane
	jobs, fetched := c.Require("migrations", &fnv1.ResourceSelector{
		ApiVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: new(c.Namespace()),
		Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: labels}},
	})
	if !fetched && !c.IsReview() {
		return nil, compose.ErrPending
	}
	var out []superseded
	for _, job := range jobs {
		component := job.GetFields()["metadata"].GetStructValue().GetFields()["annotations"].GetStructValue().GetFields()[compose.ComponentAnnotation].GetStringValue()
		if component == wanted || !strings.HasPrefix(component, migration+"-") || hasEnded(job) {
			continue
		}
		m := superseded{component: component}
		if err := structs.Decode(job, &m.job); err != nil {
			return nil, fmt.Errorf("cannot read Job %s: %w", component, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func isSuperseded(job *structpb.Struct) bool {
	return job.GetFields()["metadata"].GetStructValue().GetFields()["annotations"].GetStructValue().GetFields()[supersededAnnotation].GetStringValue() != ""
}

// hasEnded reports whether no pod of a migration's Job runs or will ever run: the Job has
// completed, has failed for good, or is suspended and has no pods left.
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

// isTrue reports whether the condition of a type in a list is True.
func isTrue(conditions *structpb.Value, typ string) bool {
	for _, v := range conditions.GetListValue().GetValues() {
		if f := v.GetStructValue().GetFields(); f["type"].GetStringValue() == typ {
			return f["status"].GetStringValue() == string(corev1.ConditionTrue)
		}
	}
	return false
}

// declared returns the component of the Job. A Job whose pod is ready is left alone. Any other, for
// example one whose image cannot be pulled, is suspended: it starts no more pods, and the declared
// migration need not wait for its deadline.
func (m *superseded) declared() compose.Component {
	c := compose.Component{Name: m.component, Part: migration, Object: &m.job, Once: true, Health: m.health}
	if ready := m.job.Status.Ready; ready == nil || *ready == 0 {
		c.Object, c.Once = suspend(&m.job, true), false
	}
	return c
}

// health is always Progressing: the migration that the claim declares waits for the Job to end.
func (m *superseded) health(*structpb.Struct) health.Status {
	name, image := m.job.Name, ""
	if cs := m.job.Spec.Template.Spec.Containers; len(cs) > 0 {
		image = cs[0].Image
	}
	return health.Status{State: health.Progressing, Message: "Job " + name + " of image " + image +
		" has not ended, and the change follows once it has: to give it up, kubectl delete job/" + name + " --cascade=foreground"}
}

// suspend returns an existing Job that is suspended and marked as superseded, or that continues.
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
