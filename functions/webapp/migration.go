package webapp

import (
	"cmp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
)

// conditionMigration is the type of the condition that says how the migration of
// the claim's image is.
const conditionMigration = "MigrationReady"

// migrationName is a new one for each image and each way to call it, so that
// each is migrated to once. Limits and the user count where they are set: who
// changes one wants another try. A claim without a migration has none.
func (a *app) migrationName() string {
	m := a.spec.Migration
	if m == nil {
		return ""
	}
	texts := []string{string(a.spec.Image), strings.Join(m.Command, "\x00"), strings.Join(m.Args, "\x00")}
	if m.BackoffLimit != nil {
		texts = append(texts, "backoffLimit", strconv.Itoa(int(*m.BackoffLimit)))
	}
	if m.ActiveDeadlineSeconds != nil {
		texts = append(texts, "activeDeadlineSeconds", strconv.FormatInt(*m.ActiveDeadlineSeconds, 10))
	}
	if a.isBaseline() {
		texts = append(texts, "podSecurity", string(a.spec.PodSecurity))
	}
	if u := a.spec.RunAsUser; u != nil {
		texts = append(texts, "runAsUser", strconv.FormatInt(*u, 10))
	}
	return migration + "-" + build.Digest(texts...)
}

// migration of the claim's image, after what has to come first. A Job cannot be
// changed, so its bundle must be one that will be made.
func (a *app) migration(after []string) compose.Component {
	name := a.migrationName()
	c := compose.Component{Name: name, Part: migration, Once: true, After: after, Health: a.migrationHealth}
	c.Object = a.migrationJob(name)
	if a.live.suspended != nil {
		c.Object, c.Once = suspend(a.live.suspended, false), false
	}
	return c
}

// migrationJob is tried again a few times: a database may be failing over. One
// that hangs must not hold a rollout for ever.
func (a *app) migrationJob(name string) *batchv1.Job {
	m := a.spec.Migration
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: a.Named(a.Name(name), migration, a.name()),
		Spec: batchv1.JobSpec{
			BackoffLimit:          or(m.BackoffLimit, 4),
			ActiveDeadlineSeconds: or(m.ActiveDeadlineSeconds, 3600),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: a.podMeta(migration),
				Spec:       a.jobPod(a.container(migration, m.Command, m.Args)),
			},
		},
	}
}

// migrationHealth is the Job's, with what its pods say. One that failed holds the
// rollout; where its pods are gone, it says where to look.
func (a *app) migrationHealth(job *structpb.Struct) health.Status {
	s, waits := health.Of(job), a.live.migrationWaits.Message
	switch reason, failed := health.JobFailure(job); {
	case s.IsHealthy():
	case failed && s.State == health.Failed:
		see := "see kubectl logs job/" + job.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
		s.Message = "The Job failed (" + reason + ") and holds the rollout: " + cmp.Or(waits, see)
	case waits != "":
		s.Message = waits
	}
	return s
}

// migrationWaitsFor reads what keeps the pods of a migration's Job from running, or why they
// failed. They are asked for only while there is something to say.
func migrationWaitsFor(c *compose.Claim, name string) (health.Wait, error) {
	job := batchv1.Job{}
	if ok, err := c.ReadObserved(name, &job); !ok || err != nil {
		return health.Wait{}, err
	}
	running := job.Status.Ready != nil && *job.Status.Ready > 0
	if job.Status.Succeeded > 0 || running && job.Status.Failed == 0 {
		return health.Wait{}, nil
	}
	return waiting(c, migration, map[string]string{batchv1.JobNameLabel: build.ScopeOf(c).Name(name)}), nil
}
