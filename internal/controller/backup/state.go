package backup

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/instance"
)

// State is all that a decision depends on.
type State struct {
	Backup *backupv1.Backup
	Now    time.Time

	// Images of our own.
	Images images.Set

	// Problem is why the source or the store cannot be reached, or nil.
	Problem *resolve.Problem

	Source resolve.Source
	Store  resolve.Store
	Key    string
	// Cluster of method physical.
	Cluster resolve.Cluster

	// Escrow of a key of the database's own, nil for a Backup that has none and gets none.
	Escrow *escrow

	// CronJobs and Runs of the Jobs that carry the Backup's label.
	CronJobs []batchv1.CronJob
	Runs     []workload.Run

	// Account, policies and Secret as they are; nil where there is none.
	Account      *corev1.ServiceAccount
	Policy       *networkingv1.NetworkPolicy
	SourcePolicy *networkingv1.NetworkPolicy
	Secret       *corev1.Secret

	// Archived is when a DatabaseCluster last archived a change, or zero.
	Archived time.Time

	// Lost says that the repository of a DatabaseCluster has lost all backups, and
	// has no new one yet.
	Lost bool

	// Gaps in the archive of a DatabaseCluster.
	Gaps []instance.Gap

	// NamespaceGone says that the namespace is being deleted: nothing can be
	// made in it any more.
	NamespaceGone bool
}

func (s *State) params() *backupv1.BackupParameters { return &s.Backup.Spec.ForProvider }

func (s *State) physical() bool { return s.params().Method == backupv1.Physical }

// verifies tells whether backups are verified on a schedule, and not only when
// somebody asks for it.
func (s *State) verifies() bool {
	v := s.params().Verification
	return v == nil || v.Enabled == nil || *v.Enabled
}

// verification as it is asked for, with its defaults.
func (s *State) verification() *backupv1.Verification {
	v := &backupv1.Verification{}
	if asked := s.params().Verification; asked != nil {
		v = asked.DeepCopy()
	}
	if v.Schedule == "" {
		v.Schedule = defaultVerification
	}
	return v
}

// defaultVerification is the default of the definition.
const defaultVerification = "0 5 * * 0"

// ours tells whether an object was made for this Backup by its reconciler.
func (s *State) ours(o metav1.Object) bool {
	c := metav1.GetControllerOf(o)
	return c != nil && c.UID == s.Backup.UID
}

// foreign CronJobs are those that back up and were made by somebody else: the
// function of DatabaseCluster.
func (s *State) foreign() []*batchv1.CronJob {
	out := make([]*batchv1.CronJob, 0, len(s.CronJobs))
	for i := range s.CronJobs {
		if !s.ours(&s.CronJobs[i]) && s.CronJobs[i].DeletionTimestamp == nil {
			out = append(out, &s.CronJobs[i])
		}
	}
	return out
}

// cronJob of ours by its name, or nil.
func (s *State) cronJob(name string) *batchv1.CronJob {
	for i := range s.CronJobs {
		if s.CronJobs[i].Name == name && s.ours(&s.CronJobs[i]) && s.CronJobs[i].DeletionTimestamp == nil {
			return &s.CronJobs[i]
		}
	}
	return nil
}
