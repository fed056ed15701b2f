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

	// Images are Storeplane's own images.
	Images images.Set

	// Problem is why the source or the store cannot be reached, or nil.
	Problem *resolve.Problem

	Source resolve.Source
	Store  resolve.Store
	Key    string
	// Cluster is the DatabaseCluster, for method physical.
	Cluster resolve.Cluster

	// Escrow is what is known of a key of the database's or Backup's own, nil for a Backup that has
	// none and gets none.
	Escrow *escrow

	// CronJobs are those with the Backup's label, and Runs those of the Jobs with it.
	CronJobs []batchv1.CronJob
	Runs     []workload.Run

	// Account, Policy, SourcePolicy and Secret are the existing objects, nil where there is none.
	Account      *corev1.ServiceAccount
	Policy       *networkingv1.NetworkPolicy
	SourcePolicy *networkingv1.NetworkPolicy
	Secret       *corev1.Secret

	// Archived is the time up to which the archive of a DatabaseCluster can be restored, or zero.
	Archived time.Time

	// BinaryLogs is true if a DatabaseCluster of MySQL archives its binary logs beside these backups.
	BinaryLogs bool

	// Lost is true if the repository of a DatabaseCluster has lost all backups and has no new one
	// yet.
	Lost bool

	// Gaps are those in the archive of a DatabaseCluster.
	Gaps []instance.Gap

	// NamespaceGone is true if the namespace is deleted or being deleted: nothing can be created in
	// it any more.
	NamespaceGone bool
}

func (s *State) params() *backupv1.BackupParameters { return &s.Backup.Spec.ForProvider }

// byCluster reports whether the DatabaseCluster makes the backups itself: by CronJobs of pgBackRest, from whose pods
// all other pods of the Backup are derived. All other backups are made here, those of method physical of MySQL too.
func (s *State) byCluster() bool { return byCluster(s.params()) }

func byCluster(p *backupv1.BackupParameters) bool {
	return p.Method == backupv1.Physical && p.Source.Type == backupv1.PostgreSQL
}

// copies reports whether the backups are copies of a server's files that are made here: those of method physical of
// MySQL.
func (s *State) copies() bool { return s.params().Method == backupv1.Physical && !s.byCluster() }

// verifies reports whether backups are verified on a schedule, and not only when a user requests
// it.
func (s *State) verifies() bool {
	v := s.params().Verification
	return v == nil || v.Enabled == nil || *v.Enabled
}

// verification returns the settings of the verification, with their defaults.
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

// defaultVerification is the default schedule of verifications, as in the CRD.
const defaultVerification = "0 5 * * 0"

// ours reports whether an object was created for this Backup by its controller.
func (s *State) ours(o metav1.Object) bool {
	c := metav1.GetControllerOf(o)
	return c != nil && c.UID == s.Backup.UID
}

// foreign returns the CronJobs that back up and that the function created for a DatabaseCluster.
func (s *State) foreign() []*batchv1.CronJob {
	out := make([]*batchv1.CronJob, 0, len(s.CronJobs))
	for i := range s.CronJobs {
		if !s.ours(&s.CronJobs[i]) && s.CronJobs[i].DeletionTimestamp == nil {
			out = append(out, &s.CronJobs[i])
		}
	}
	return out
}

// cronJob returns the Backup's own CronJob of a name, or nil.
func (s *State) cronJob(name string) *batchv1.CronJob {
	for i := range s.CronJobs {
		if s.CronJobs[i].Name == name && s.ours(&s.CronJobs[i]) && s.CronJobs[i].DeletionTimestamp == nil {
			return &s.CronJobs[i]
		}
	}
	return nil
}
