package webapp

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// migrationName returns the component of the claim's migration, or "" without one. It contains a
// digest of the image, the command and the arguments, so that each of these is migrated to once.
// Limits, podSecurity baseline and the user count where they are set: a user who changes one of
// them wants another attempt.
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

// migration returns the component of the migration Job, which comes after the named ones. The
// AppConfig is among these until it has decided which bundle there will be, since a Job cannot
// be changed to another one.
func (a *app) migration(after []string) compose.Component {
	name := a.migrationName()
	c := compose.Component{Name: name, Part: migration, Once: true, After: after, Health: a.migrationHealth}
	c.Object = a.migrationJob(name)
	if a.live.suspended != nil {
		c.Object, c.Once = suspend(a.live.suspended, false), false
	}
	return c
}

// migrationJob returns the Job of the migration. It is retried a few times, since a database may be
// failing over, and has a deadline, so that a Job that hangs does not hold a rollout forever.
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

// migrationHealth returns the health of the migration Job, with the reason that its pods report. A
// Job that failed holds the rollout; if its pods report nothing, the message points to its log.
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

// migrationGrace is how long a migration's Job may take to start until its pods are requested.
const migrationGrace = 6 * time.Second

// migrationWaitsFor returns what keeps the pods of a migration's Job from running, or why they
// failed. The pods are requested only while there is something to report, and not while the first one
// starts: Crossplane watches what is requested, and it causes half a dozen events.
func migrationWaitsFor(c *compose.Claim, name string) (health.Wait, error) {
	// Only what is used is read: a whole Job costs more than all else that is observed.
	var job struct {
		Metadata struct {
			CreationTimestamp metav1.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Status batchv1.JobStatus `json:"status"`
	}
	if ok, err := c.ReadObserved(name, &job); !ok || err != nil {
		return health.Wait{}, err
	}
	running := job.Status.Ready != nil && *job.Status.Ready > 0
	counting := job.Status.UncountedTerminatedPods != nil && len(job.Status.UncountedTerminatedPods.Succeeded) > 0
	if job.Status.Succeeded > 0 || (running || counting) && job.Status.Failed == 0 {
		return health.Wait{}, nil
	}
	left := migrationGrace - c.Now().Sub(job.Metadata.CreationTimestamp.Time)
	if left > 0 && job.Status.Failed == 0 && c.PodFailure() == "" && !c.Now().IsZero() {
		c.RequeueWithin(left + 500*time.Millisecond)
		return health.Wait{}, nil
	}
	return build.AwaitPods(c, migration, map[string]string{batchv1.JobNameLabel: build.ScopeOf(c).Name(name)}, (*podfailure.Failure).Lift), nil
}
