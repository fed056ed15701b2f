package backup

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// AppliedAnnotation holds the digest of what was applied, so that a field that is no longer wanted
// is noticed.
const AppliedAnnotation = "backup.example.com/applied"

// account returns the ServiceAccount of the pods. It has no rights, and its token is not mounted.
func account(b *backupv1.Backup) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   meta(b, objectName(b.Name), nil),
		AutomountServiceAccountToken: new(false),
	}
}

// policy returns the NetworkPolicy by which all pods reach the store. While it is not known which
// store that is, the existing rules stay: a pod may be running.
func (s *State) policy() *networkingv1.NetworkPolicy {
	pods := metav1.LabelSelector{MatchLabels: map[string]string{backupv1.BackupLabel: s.Backup.Name}}
	to := append([]networkingv1.NetworkPolicyEgressRule{build.ToDNS()}, s.Store.Egress(s.Backup.Namespace)...)
	out := workload.NetworkPolicy(meta(s.Backup, objectName(s.Backup.Name), nil), pods, to...)
	if s.Store.Destination.Type == "" && s.Policy != nil && s.ours(s.Policy) && slices.Contains(s.Policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
		out.Spec = *s.Policy.Spec.DeepCopy()
	}
	return out
}

// sourcePolicy returns the NetworkPolicy by which pods reach the database that they read. Pods that
// verify or delete do not need it, and a backup that is verified may contain programs. It is nil
// while it is not known which database that is, so that an existing policy stays, and for the
// backups of a DatabaseCluster's own, whose pods reach the servers by a policy of the cluster.
func (s *State) sourcePolicy() *networkingv1.NetworkPolicy {
	if s.byCluster() || s.Source.Secret == "" {
		return nil
	}
	pods := metav1.LabelSelector{MatchLabels: map[string]string{backupv1.BackupLabel: s.Backup.Name}, MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: backupv1.ActionLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{string(backup.Backup), string(backup.Check)}},
	}}
	return workload.NetworkPolicy(meta(s.Backup, sourcePolicyName(s.Backup.Name), nil), pods, s.Source.Egress(s.Backup.Namespace, s.params().Source.Type)...)
}

// storeSecret returns the Secret with a copy of a configuration's credentials, or nil if there is
// none.
func (s *State) storeSecret() *corev1.Secret {
	if len(s.Store.Copy) == 0 {
		return nil
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta(s.Backup, s.Store.Secret, s.Store.Bounds.Annotations()),
		Type:       corev1.SecretTypeOpaque,
		Data:       s.Store.Copy,
	}
}

// cronJobs returns the CronJobs that are wanted.
func (v *view) cronJobs() ([]*batchv1.CronJob, error) {
	var out []*batchv1.CronJob
	add := func(name string, sc schedule, a backup.Action) error {
		pod, err := v.template(a)
		if err != nil {
			return err
		}
		m := meta(v.Backup, name, map[string]string{workload.DigestAnnotation: v.digest})
		c := workload.CronJob(m, workload.Schedule{
			Cron: sc.spec, TimeZone: v.params().TimeZone, Suspend: sc.suspended, Period: sc.period,
		}, a, pod)
		if v.copies() {
			// The volume of a pod that has ended, as large as the database's, stays for as long as its Job does.
			c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = new(int32(1)), new(int32(1))
		}
		out = append(out, c)
		return nil
	}
	if v.params().Schedule != "" && !v.byCluster() {
		if err := add(objectName(v.Backup.Name), v.schedules[0], backup.Backup); err != nil {
			return nil, err
		}
	}
	if v.verify != nil {
		if err := add(verifyName(v.Backup.Name), *v.verify, backup.Verify); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// differs reports whether an object is not as wanted. Fields that are not set in what is wanted do
// not count.
func differs(want, have client.Object, wanted, found any) bool {
	if !equality.Semantic.DeepDerivative(wanted, found) {
		return true
	}
	return !equality.Semantic.DeepDerivative(want.GetLabels(), have.GetLabels()) ||
		!equality.Semantic.DeepDerivative(want.GetAnnotations(), have.GetAnnotations()) ||
		!equality.Semantic.DeepDerivative(want.GetOwnerReferences(), have.GetOwnerReferences())
}
