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
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// escrow is what is known of the copy of a key of the database's own.
type escrow struct {
	// key that the Backup's Secret holds, nil where its backups are plain.
	key []byte

	// missing is the Secret that should hold the key and does not, or "".
	missing string

	// kept is the copy, or nil, and possible whether there is a place for one.
	kept     *corev1.Secret
	possible bool

	// own is set for method logical, whose Secret is made here.
	own *ownKey
}

// ownKey of a Backup with method logical.
type ownKey struct {
	// taken says that there is a Secret of the key's name that was not made for the Backup.
	taken bool

	// draws says that a Backup without backups gets a key, which is drawn.
	draws bool
	drawn []byte
}

// escrow of a Backup that asks for it, and that a DatabaseCluster has made for itself: nothing is
// kept for a name that is none's. One with method logical has it without asking.
func (e *external) escrow(ctx context.Context, s *State) error {
	b, p := s.Backup, s.params()
	switch {
	case xpmeta.WasDeleted(b):
		return nil
	case !s.physical():
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

// ownKey of a Backup with method logical that names none. One that has begun with a key goes on
// with it, whatever is set later and wherever its backups are written to.
func (e *external) ownKey(ctx context.Context, s *State) error {
	b := s.Backup
	if s.params().Encryption != nil {
		return nil
	}
	found, err := e.reach.OwnKey(ctx, b.Namespace, b.Name)
	if err != nil {
		return err
	}
	out := &escrow{key: resolve.KeyOf(found.Secret), kept: found.Kept, own: &ownKey{taken: found.Taken, draws: s.Store.Generates}}
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

// place of a copy that is not kept yet.
func (e *external) place(ctx context.Context, s *escrow) (err error) {
	if s.kept == nil {
		s.possible, err = e.kube.Find(ctx, "", backup.EscrowNamespace, &corev1.Namespace{})
	}
	return err
}

// draw an age identity, as age-keygen does.
func draw() ([]byte, error) {
	i, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return []byte(i.String() + "\n"), nil
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
	if s.physical() {
		return backup.EscrowName(s.Backup.Namespace, s.params().Source.Connection.DatabaseClusterRef.Name)
	}
	return backup.LogicalEscrowName(s.Backup.Namespace, s.Backup.Name)
}

// encryption of the backups: with the key that the Backup names, or with its own.
func (s *State) encryption() *backupv1.Encryption {
	if e := s.params().Encryption; e != nil {
		return e
	}
	if s.Escrow == nil || s.Escrow.own == nil || s.Escrow.key == nil {
		return nil
	}
	return &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: backup.LogicalKeyName(s.Backup.Name), Key: backup.EscrowKey}}
}

// beginning is how a Backup with method logical goes on that names no key, and has none in its
// namespace.
type beginning int

const (
	// settled backups are encrypted or plain, and that is kept, or not asked for.
	settled beginning = iota
	// unknown until it was checked whether there are backups.
	unknown
	// plain backups are there, or were begun with.
	plain
	// fresh: there are none, and a key is drawn.
	fresh
	// lost is a key of which no copy is left either.
	lost
	// returns of the copy: the Secret is made again.
	returns
)

// begin tells how a Backup goes on. What its backups began with they go on with: neither is a key
// drawn where there are plain ones, nor another one where there was one.
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
	// A CronJob is made once it is known how a Backup begins.
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

// keyOf is the Secret with the key that a CronJob's pods mount, or "".
func keyOf(c *batchv1.CronJob) string {
	for _, v := range c.Spec.JobTemplate.Spec.Template.Spec.Volumes {
		if v.Name == workload.KeyVolume && v.Secret != nil {
			return v.Secret.SecretName
		}
	}
	return ""
}

// keepKey makes the copy, once: whatever the Secret that it is of holds later, the backups that
// there are were written with what it held first. Nothing owns it, so it outlives the namespace.
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
			Labels: map[string]string{"app.kubernetes.io/name": "backup", "app.kubernetes.io/managed-by": "storeplane"},
		},
		Type:      corev1.SecretTypeOpaque,
		Immutable: new(true),
	}
	if key != nil {
		copied.Data = map[string][]byte{backup.EscrowKey: key}
	}
	d.Apply = append(d.Apply, copied)
}

// isKey tells whether a key can be used: what is kept stays.
func isKey(key []byte) bool {
	_, err := stream.ParseKey(string(key))
	return err == nil
}

// keySecret of a Backup's own key, that is not there and shall be: of the copy, or of what is made
// its copy just before. Where that fails, as where another provider has made one meanwhile, this
// is not made either. It has no owner, so it outlives the Backup.
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

// keyless: no backup is made before the key is there, and its copy is kept. What is planned
// already goes on.
func (v *view) keyless() bool {
	e := v.Escrow
	switch v.beginning {
	case unknown, fresh, lost, returns:
		return true
	case settled, plain:
	}
	return e != nil && e.own != nil && e.key != nil && (!isKey(e.key) || e.kept == nil && !e.possible)
}

// unescrowed: the backups cannot be read once their namespace is lost. Until it is known whether
// there are any, the check of what is reached comes first.
func (v *view) unescrowed() *refusal {
	if v.beginning == unknown {
		return nil
	}
	return v.uncopied()
}

// uncopied tells why no copy is kept, or why it is not that of the key.
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
		return "Secret " + name + " says that the backups are plain, and they are written with a key now: those of before cannot be read with it. Move the key to a Secret of another name and name that in spec.forProvider.encryption, or " + otherwise
	case len(e.kept.Data[backup.EscrowKey]) == 0:
		return "Secret " + name + " says that the backups are plain, and they are written with a key now: those of before cannot be read with it. Name another destination, or " + otherwise
	default:
		return "Secret " + name + " holds another key than the backups are written with now: those of before need it. Put its key back into Secret " + v.encryption().SecretRef.Name + ", or " + otherwise
	}
}

// escrowed condition of a Backup that asks for a copy.
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
