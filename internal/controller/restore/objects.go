package restore

import (
	"cmp"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/label"
)

// Names of the objects that a Restore creates.
func jobName(restore string) string         { return restore + "-restore" }
func storeSecretName(restore string) string { return restore + "-restore-store" }
func keySecretName(restore string) string   { return restore + "-restore-key" }

func (s *State) labels() map[string]string {
	return map[string]string{
		label.Name:            "restore",
		label.Instance:        s.Restore.Name,
		label.ManagedBy:       label.Storeplane,
		backupv1.RestoreLabel: s.Restore.Name,
	}
}

// meta returns the metadata of an object that is deleted with the Restore.
func (s *State) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: s.Restore.Namespace,
		Labels:    s.labels(),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: backupv1.GroupVersion.String(),
			Kind:       backupv1.RestoreKind,
			Name:       s.Restore.Name,
			UID:        s.Restore.UID,
			Controller: new(true),
		}},
	}
}

// objects returns the objects that the Job needs.
func (s *State) objects() []client.Object {
	out := []client.Object{
		&corev1.ServiceAccount{
			TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta:                   s.meta(jobName(s.Restore.Name)),
			AutomountServiceAccountToken: new(false),
		},
		workload.NetworkPolicy(s.meta(jobName(s.Restore.Name)), metav1.LabelSelector{MatchLabels: map[string]string{backupv1.RestoreLabel: s.Restore.Name}}, s.egress()...),
	}
	if len(s.Store.Copy) > 0 {
		m := s.meta(s.Store.Secret)
		m.Annotations = s.Store.Bounds.Annotations()
		out = append(out, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: m,
			Type:       corev1.SecretTypeOpaque,
			Data:       s.Store.Copy,
		})
	}
	if len(s.From.Key) > 0 {
		out = append(out, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: s.meta(keySecretName(s.Restore.Name)),
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{backup.EscrowKey: s.From.Key},
		})
	}
	return out
}

// key returns the key of the backups that the pod mounts: the one that is named, or the copy of the
// generated one. It is nil for plain backups.
func (s *State) key() *backupv1.SecretKey {
	switch {
	case s.From.Encryption != nil:
		return &s.From.Encryption.SecretRef
	case len(s.From.Key) > 0:
		return &backupv1.SecretKey{Name: keySecretName(s.Restore.Name), Key: backup.EscrowKey}
	}
	return nil
}

// egress returns the rules by which the pods reach DNS, the store, and the database that they
// restore into.
func (s *State) egress() []networkingv1.NetworkPolicyEgressRule {
	namespace := s.Restore.Namespace
	return slices.Concat([]networkingv1.NetworkPolicyEgressRule{build.ToDNS()}, s.Store.Egress(namespace), s.Target.Egress(namespace, s.Restore.Spec.ForProvider.Target.Type))
}

// job returns the Job that restores.
func (s *State) job() (*batchv1.Job, error) {
	p := &s.Restore.Spec.ForProvider
	flavour, err := workload.FlavourOf(p.Target.Type, s.Target.Version, s.From.Version)
	if err != nil {
		return nil, err
	}
	pod := workload.Pod{
		Labels: maps.Clone(s.labels()),
		Task: backup.Task{
			Action:      backup.Restore,
			Method:      backupv1.Logical,
			Namespace:   s.From.Namespace,
			Name:        s.From.Name,
			Database:    backup.Database{Engine: p.Target.Type, Databases: p.Target.Databases},
			Destination: s.Store.Destination,
			Encrypted:   s.key() != nil,
			ID:          p.Source.ID,
			Overwrite:   p.Overwrite,
			Restore:     s.Restore.Namespace + "/" + s.Restore.Name,
			UID:         string(s.Restore.UID),

			AcceptUnsealed: p.Source.AcceptUnsealed,
		},
		Image:     flavour.Image(s.Images),
		ID:        flavour.ID,
		Source:    s.Target.Source,
		Store:     s.Store.Store,
		Account:   cmp.Or(s.Store.ServiceAccount, jobName(s.Restore.Name)),
		Resources: p.Resources,
		Key:       s.key(),
	}
	if t := p.Source.Time; t != nil {
		pod.Task.Time = new(t.UTC())
	}
	template, err := pod.Template()
	if err != nil {
		return nil, err
	}
	job := workload.Job(s.meta(jobName(s.Restore.Name)), backup.Restore, template)
	if p.Overwrite {
		// Another Restore may have completed between two pods of this one. The second pod would
		// drop what that one restored.
		workload.Once(job)
	}
	return job, nil
}
