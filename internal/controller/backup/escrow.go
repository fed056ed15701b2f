package backup

import (
	"bytes"
	"context"
	"fmt"

	"filippo.io/age"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/stream"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/label"
)

// escrow is what is known of the key of a database's or Backup's own, and of its copy in escrow.
type escrow struct {
	// key is the one in the Backup's Secret, nil if its backups are plain.
	key []byte

	// missing is the Secret that should hold the key and does not, or "".
	missing string

	// kept is the copy, or nil. possible is true if there is no copy and the namespace for one
	// exists.
	kept     *corev1.Secret
	possible bool

	// own is set for a Backup whose Secret is created here. That of the backups of a DatabaseCluster's own is the
	// cluster's.
	own *ownKey
}

// ownKey is the generated key of a Backup whose backups are made here.
type ownKey struct {
	// taken is true if a Secret has the key's name and was not created for the Backup.
	taken bool

	// draws is true if a Backup without backups gets a generated key, and drawn is that key.
	draws bool
	drawn []byte
}

// escrow reads the key and its copy, for a Backup that requests a copy and that a DatabaseCluster
// has created for itself: no other Backup may have a copy kept under the name of that cluster. A
// Backup whose backups are made here needs no request.
func (e *external) escrow(ctx context.Context, s *State) error {
	b, p := s.Backup, s.params()
	switch {
	case xpmeta.WasDeleted(b):
		return nil
	case !s.byCluster():
		return e.ownKey(ctx, s)
	case b.Annotations[backup.EscrowAnnotation] == "":
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
	if err != nil {
		return err
	}
	if found {
		out.kept = kept
	}
	s.Escrow = out
	return e.place(ctx, out)
}

// ownKey reads or generates the key of a Backup that names none. A Backup that
// has begun with a key keeps it, whatever is set later and wherever its backups are written to.
func (e *external) ownKey(ctx context.Context, s *State) error {
	b := s.Backup
	if s.params().Encryption != nil {
		return nil
	}
	found, err := e.reach.OwnKey(ctx, b.Namespace, b.Name)
	if err != nil {
		return err
	}
	draws := s.Store.Generates
	if !draws && b.Annotations[backup.EscrowAnnotation] != "" {
		// The function has copied the platform's credentials, and a copy is no proof of whose they are.
		if draws, err = e.isClusters(ctx, b); err != nil {
			return err
		}
	}
	out := &escrow{key: resolve.KeyOf(found.Secret), kept: found.Kept, own: &ownKey{taken: found.Taken, draws: draws}}
	switch {
	case out.key != nil:
		s.Key = resolve.PrintOf(found.Secret)
	case out.kept != nil:
	case !out.own.draws:
		return nil
	default:
		if out.own.drawn, err = e.draw(); err != nil {
			return fmt.Errorf("cannot draw a key for Backup %s/%s: %w", b.Namespace, b.Name, err)
		}
	}
	s.Escrow = out
	return e.place(ctx, out)
}

// place finds out whether there is a place for a copy, if none is kept yet.
func (e *external) place(ctx context.Context, s *escrow) (err error) {
	if s.kept == nil {
		s.possible, err = e.kube.Find(ctx, "", backup.EscrowNamespace, &corev1.Namespace{})
	}
	return err
}

// draw generates an age identity, as age-keygen does.
func draw() ([]byte, error) {
	i, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return []byte(i.String() + "\n"), nil
}

// isClusters reports whether a Backup is controlled by the DatabaseCluster that it names.
func (e *external) isClusters(ctx context.Context, b *backupv1.Backup) (bool, error) {
	owner, ref := metav1.GetControllerOf(b), b.Spec.ForProvider.Source.Connection.DatabaseClusterRef
	if owner == nil || ref == nil || owner.Kind != appsv1.DatabaseClusterKind || owner.APIVersion != appsv1.GroupVersion.String() ||
		owner.Name != ref.Name {
		return false, nil
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(appsv1.GroupVersion.WithKind(appsv1.DatabaseClusterKind))
	found, err := e.kube.Find(ctx, b.Namespace, owner.Name, cluster)
	return found && cluster.GetUID() == owner.UID, err
}

func (s *State) escrowName() string {
	if s.byCluster() {
		return backup.EscrowName(s.Backup.Namespace, s.params().Source.Connection.DatabaseClusterRef.Name)
	}
	return backup.LogicalEscrowName(s.Backup.Namespace, s.Backup.Name)
}

// encryption returns the encryption of the backups, with the key that the Backup names or with its
// own. It is nil for plain backups.
func (s *State) encryption() *backupv1.Encryption {
	if e := s.params().Encryption; e != nil {
		return e
	}
	if s.Escrow == nil || s.Escrow.own == nil || s.Escrow.key == nil {
		return nil
	}
	return &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: backup.LogicalKeyName(s.Backup.Name), Key: backup.EscrowKey}}
}

// beginning is how a Backup continues whose backups are made here, that names no key and has none in
// its namespace.
type beginning int

const (
	// settled means that nothing is to be decided: the Backup has a key, or its copy records that
	// the backups are plain, or no copy is wanted.
	settled beginning = iota
	// unknown means that it was not checked yet whether there are backups.
	unknown
	// plain means that there are plain backups, or that the first one is to be plain.
	plain
	// fresh means that there are no backups, and a key is generated.
	fresh
	// lost means that neither the key nor a copy of it exists any more.
	lost
	// returns means that the Secret is created again from the copy.
	returns
)

// begin returns how a Backup continues. Its backups stay as they began: no key is generated where
// there are plain ones, and no other key where there was one.
func (v *view) begin() beginning {
	e := v.Escrow
	switch {
	case e == nil, e.own == nil, e.key != nil:
		return settled
	case len(resolve.KeyOf(e.kept)) > 0:
		return returns
	case e.kept != nil:
		return settled
	}
	// A CronJob is created once it is known how a Backup begins, so it shows how this one did.
	switch cron := v.cronJob(objectName(v.Backup.Name)); {
	case cron == nil:
	case keyOf(cron) == backup.LogicalKeyName(v.Backup.Name):
		return lost
	case keyOf(cron) == "":
		return plain
	}
	switch {
	case v.digest == "", v.obs.Checked != v.digest, v.obs.CatalogTime == nil, v.active(backup.Backup) != nil:
		return unknown
	case v.obs.Count > 0:
		return plain
	case v.Backup.GetCondition(backupv1.TypeEscrowed).Status == corev1.ConditionTrue:
		return lost
	}
	return fresh
}

// keyOf returns the name of the Secret with the key that a CronJob's pods mount, or "".
func keyOf(c *batchv1.CronJob) string {
	for _, v := range c.Spec.JobTemplate.Spec.Template.Spec.Volumes {
		if v.Name == backup.KeyVolume && v.Secret != nil {
			return v.Secret.SecretName
		}
	}
	return ""
}

// keepKey creates the copy, once: whatever the Secret with the key holds later, the existing
// backups were written with what it held first. The copy has no owner, so it outlives the
// namespace.
func (v *view) keepKey(d *Decision) {
	e := v.Escrow
	if e == nil || e.missing != "" || e.kept != nil || !e.possible {
		return
	}
	key := e.key
	switch v.beginning {
	case unknown, lost, returns:
		return
	case fresh:
		if e.own.taken {
			return
		}
		key = e.own.drawn
	case settled, plain:
	}
	if e.own != nil && key != nil && !isKey(key) {
		return
	}
	copied := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: backup.EscrowNamespace, Name: v.escrowName(),
			Labels: map[string]string{label.Name: "backup", label.ManagedBy: label.Storeplane},
		},
		Type:      corev1.SecretTypeOpaque,
		Immutable: new(true),
	}
	if key != nil {
		copied.Data = map[string][]byte{backup.EscrowKey: key}
	}
	d.Apply = append(d.Apply, copied)
}

// isKey reports whether a key can be used. It is checked before the copy is created, which cannot
// be changed.
func isKey(key []byte) bool {
	_, err := stream.ParseKey(string(key))
	return err == nil
}

// keySecret returns the Secret of a Backup's own key, if it is to be created: from the copy, or
// from the key that is copied just before. If that copy fails, for example because another provider
// has created one meanwhile, this Secret is not created either. It has no owner, so it outlives the
// Backup.
func (v *view) keySecret() *corev1.Secret {
	var key []byte
	switch v.beginning {
	case returns:
		key = resolve.KeyOf(v.Escrow.kept)
	case fresh:
		if v.Escrow.possible {
			key = v.Escrow.own.drawn
		}
	case settled, unknown, plain, lost:
	}
	if key == nil {
		return nil
	}
	out := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta(v.Backup, backup.LogicalKeyName(v.Backup.Name), nil),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{backup.EscrowKey: key},
	}
	out.OwnerReferences = nil
	return out
}

// keyless reports whether no backup may be made because the key or its copy does not exist yet.
// CronJobs that exist already continue.
func (v *view) keyless() bool {
	e := v.Escrow
	switch v.beginning {
	case unknown, fresh, lost, returns:
		return true
	case settled, plain:
	}
	return e != nil && e.own != nil && e.key != nil && (!isKey(e.key) || e.kept == nil && !e.possible)
}

// unescrowed refuses if the backups cannot be read after the loss of their namespace. While it is
// unknown whether there are any, the check of what is reached comes first.
func (v *view) unescrowed() *refusal {
	if v.beginning == unknown {
		return nil
	}
	return v.uncopied()
}

// uncopied returns why no copy is kept, or why it is not that of the key, or nil.
func (v *view) uncopied() *refusal {
	e := v.Escrow
	if e == nil {
		return nil
	}
	name := backup.EscrowNamespace + "/" + v.escrowName()
	secret := backup.LogicalKeyName(v.Backup.Name)
	switch {
	case v.beginning == lost:
		message := "Secret " + secret + ", which holds the key of the backups, does not exist, and neither does its copy, Secret " + name + ": have the platform team create that with the key in " + backup.EscrowKey + ", or create this Backup again to begin with another key"
		return &refusal{reason: backupv1.ReasonSecretNotFound, message: message}
	case v.beginning == unknown:
		return &refusal{reason: backupv1.ReasonEscrowPending, message: "Waiting for the first contact with the store: a key is generated where there are no plain backups"}
	case e.own != nil && e.key != nil && !isKey(e.key):
		message := "Secret " + secret + " holds no age identity in " + backup.EscrowKey + ": restore what it held, or delete it to have it created again from its copy"
		return &refusal{reason: backupv1.ReasonSecretKeyNotFound, message: message}
	case e.missing != "":
		return &refusal{reason: backupv1.ReasonEscrowPending, message: "Waiting for Secret " + e.missing + ", which holds the database's key"}
	case e.kept == nil && !e.possible:
		return &refusal{reason: backupv1.ReasonEscrowNotFound, message: "Namespace " + backup.EscrowNamespace + ", which keeps a copy of each database's key, does not exist: create it"}
	case e.kept == nil:
		return &refusal{reason: backupv1.ReasonEscrowPending, message: "Waiting for Secret " + name + ", the copy of the database's key"}
	case v.beginning == returns:
		return &refusal{reason: backupv1.ReasonEscrowPending, message: "Waiting for Secret " + secret + ", which is created again from its copy"}
	case !bytes.Equal(e.kept.Data[backup.EscrowKey], e.key):
		return &refusal{reason: backupv1.ReasonEscrowDiffers, message: v.escrowDiffers(name)}
	}
	return nil
}

func (v *view) escrowDiffers(name string) string {
	const otherwise = "have the platform team delete the copy once no backup needs it"
	switch e := v.Escrow; {
	case e.key == nil:
		return "Secret " + name + " holds a key, and the backups are plain now: those of before need it. Name another destination with that key in backup.encryption, or " + otherwise
	case len(e.kept.Data[backup.EscrowKey]) == 0 && e.own != nil:
		return "Secret " + name + " marks the backups as plain, and they are encrypted with a key now: those of before cannot be read with it. Move the key to a Secret of another name and name that in spec.forProvider.encryption, or " + otherwise
	case len(e.kept.Data[backup.EscrowKey]) == 0:
		return "Secret " + name + " marks the backups as plain, and they are encrypted with a key now: those of before cannot be read with it. Name another destination, or " + otherwise
	default:
		return "Secret " + name + " holds another key than the backups are written with now: those of before need it. Put its key back into Secret " + v.encryption().SecretRef.Name + ", or " + otherwise
	}
}

// escrowed returns condition Escrowed of a Backup whose key is kept in escrow.
func (v *view) escrowed() xpv2.Condition {
	if r := v.uncopied(); r != nil {
		return condition(backupv1.TypeEscrowed, corev1.ConditionFalse, r.reason, r.message, v.Now)
	}
	message := ""
	if v.Escrow.own != nil && v.Escrow.key == nil {
		message = "The backups are plain, as they were before keys were generated: to encrypt them, name a key in spec.forProvider.encryption"
	}
	return condition(backupv1.TypeEscrowed, corev1.ConditionTrue, backupv1.ReasonKept, message, v.Now)
}
