package backup

import (
	"bytes"
	"context"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// escrow is what is known of the copy of a database's own key.
type escrow struct {
	// key that the Backup's Secret holds, nil where its backups are plain.
	key []byte

	// missing is the Secret that should hold the key and does not, or "".
	missing string

	// kept is the copy, or nil, and possible whether there is a place for one.
	kept     *corev1.Secret
	possible bool
}

// escrow of a Backup that asks for it, and that a DatabaseCluster has made for itself: nothing is
// kept for a name that is none's.
func (e *external) escrow(ctx context.Context, s *State) error {
	b, p := s.Backup, s.params()
	if !s.physical() || xpmeta.WasDeleted(b) || b.Annotations[backup.EscrowAnnotation] == "" {
		return nil
	}
	if own, err := e.isClusters(ctx, b); err != nil || !own {
		return err
	}
	out := &escrow{}
	if p.Encryption != nil {
		secret := &corev1.Secret{}
		ref := p.Encryption.SecretRef
		found, err := e.kube.Find(ctx, b.Namespace, ref.Name, secret)
		if err != nil {
			return err
		}
		if !found || len(secret.Data[ref.Key]) == 0 {
			s.Escrow = &escrow{missing: ref.Name}
			return nil
		}
		out.key = secret.Data[ref.Key]
	}
	kept := &corev1.Secret{}
	found, err := e.kube.Find(ctx, backup.EscrowNamespace, s.escrowName(), kept)
	switch {
	case err != nil:
		return err
	case found:
		out.kept = kept
	default:
		if out.possible, err = e.kube.Find(ctx, "", backup.EscrowNamespace, &corev1.Namespace{}); err != nil {
			return err
		}
	}
	s.Escrow = out
	return nil
}

// isClusters tells whether a Backup is controlled by the DatabaseCluster that it names.
func (e *external) isClusters(ctx context.Context, b *backupv1.Backup) (bool, error) {
	owner := metav1.GetControllerOf(b)
	if owner == nil || owner.Kind != appsv1.DatabaseClusterKind || owner.APIVersion != appsv1.GroupVersion.String() ||
		owner.Name != b.Spec.ForProvider.Source.Connection.DatabaseClusterRef.Name {
		return false, nil
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(appsv1.GroupVersion.WithKind(appsv1.DatabaseClusterKind))
	found, err := e.kube.Find(ctx, b.Namespace, owner.Name, cluster)
	return found && cluster.GetUID() == owner.UID, err
}

func (s *State) escrowName() string {
	return backup.EscrowName(s.Backup.Namespace, s.params().Source.Connection.DatabaseClusterRef.Name)
}

// keepKey makes the copy, once: whatever the Secret that it is of holds later, the backups that
// there are were written with what it held first. Nothing owns it, so it outlives the namespace.
func (v *view) keepKey(d *Decision) {
	if v.Escrow == nil || v.Escrow.missing != "" || v.Escrow.kept != nil || !v.Escrow.possible {
		return
	}
	copied := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: backup.EscrowNamespace, Name: v.escrowName(),
			Labels: map[string]string{"app.kubernetes.io/name": "backup", "app.kubernetes.io/managed-by": "storeplane"},
		},
		Type:      corev1.SecretTypeOpaque,
		Immutable: new(true),
	}
	if v.Escrow.key != nil {
		copied.Data = map[string][]byte{backup.EscrowKey: v.Escrow.key}
	}
	d.Apply = append(d.Apply, copied)
}

// unescrowed: the backups cannot be read once their namespace is lost.
func (v *view) unescrowed() *refusal {
	e := v.Escrow
	if e == nil {
		return nil
	}
	name := backup.EscrowNamespace + "/" + v.escrowName()
	switch {
	case e.missing != "":
		return &refusal{reason: backupv1.ReasonEscrowPending, message: "Waiting for Secret " + e.missing + ", which holds the database's key"}
	case e.kept == nil && !e.possible:
		return &refusal{reason: backupv1.ReasonEscrowNotFound, message: "Namespace " + backup.EscrowNamespace + ", which keeps a copy of each database's key, does not exist: create it"}
	case e.kept == nil:
		return &refusal{reason: backupv1.ReasonEscrowPending, message: "Waiting for Secret " + name + ", the copy of the database's key"}
	case !bytes.Equal(e.kept.Data[backup.EscrowKey], e.key):
		return &refusal{reason: backupv1.ReasonEscrowDiffers, message: v.escrowDiffers(name)}
	}
	return nil
}

func (v *view) escrowDiffers(name string) string {
	const otherwise = ", or have the platform team delete the copy once no backup needs it"
	switch e := v.Escrow; {
	case e.key == nil:
		return "Secret " + name + " holds a key, and the backups are plain now: those of before need it. Name another destination with that key in backup.encryption" + otherwise
	case len(e.kept.Data[backup.EscrowKey]) == 0:
		return "Secret " + name + " says that the backups are plain, and they are written with a key now: those of before cannot be read with it. Name another destination" + otherwise
	default:
		return "Secret " + name + " holds another key than the backups are written with now: those of before need it. Put its key back into Secret " + v.params().Encryption.SecretRef.Name + otherwise
	}
}

// escrowed condition of a Backup that asks for a copy.
func (v *view) escrowed() xpv2.Condition {
	if r := v.unescrowed(); r != nil {
		return condition(backupv1.TypeEscrowed, corev1.ConditionFalse, r.reason, r.message, v.Now)
	}
	return condition(backupv1.TypeEscrowed, corev1.ConditionTrue, backupv1.ReasonKept, "", v.Now)
}
