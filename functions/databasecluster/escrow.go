package databasecluster

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
)

// backupKey is the component of the Secret with the database's generated encryption key.
const backupKey = "backup-key"

// Names under which copies of keys are requested.
const (
	escrowRequirement       = "backup-escrow"
	sourceEscrowRequirement = "restore-escrow"
	sourceKeyRequirement    = "restore-key"
)

// ownKey encrypts backups with a generated key of the database, if the installation is
// configured so. An existing repository keeps its encryption, whatever is set later and wherever
// it moves: one that has a key keeps it, also if the Secret was deleted by mistake, and one that
// is not encrypted stays so.
func (d *inputs) ownKey(c *compose.Claim, b *backing, platforms bool) error {
	was, err := observedBackup(c)
	if err != nil {
		return err
	}
	if err := d.checkKey(was, b); err != nil || b.encryption != nil {
		return err
	}
	draws := platforms && d.settings.Backup.Generates()
	drawn := false
	has, isOwn, isNew := c.Observed(backupKey) != nil, was.isOwn(d.Name(backupKey)), !c.IsComposed(d.server)
	if was == nil {
		// The kind Backup may have been removed, and the objects with it.
		if isOwn, err = d.mountsKey(c); err != nil {
			return err
		}
	}
	switch {
	case has, c.IsReview() && draws:
		b.key, err = c.Secret(backupKey, backup.EscrowKey, compose.Source.Password)
	case c.IsReview():
	case isNew, isOwn, b.watched && was == nil && !d.sleepsEmpty():
		lost := isOwn && (!isNew || d.hasData())
		b.key, drawn, err = d.keptKey(c, lost, isNew && (isOwn || draws && !d.restoresOwn()))
	}
	switch {
	case err != nil:
		return err
	case b.key != "" && isNew && !d.hasData() && !b.watched && !c.IsReview():
		ways := "install it, or name a key in backup.encryption"
		if drawn {
			ways = "install it, name a key in backup.encryption, or have the platform team set backup.encryption: None in EnvironmentConfig storeplane"
		}
		return compose.Invalidf("backups are encrypted with a key of the database's own, of which provider-storeplane keeps a copy, and it is not installed: %s", ways)
	case b.key != "":
		b.encryption = &appsv1.SecretKeyReference{Name: d.Name(backupKey), Key: backup.EscrowKey}
	}
	b.escrowed, b.plain = b.key != "" || draws, b.key == "" && draws
	return nil
}

// checkKey refuses to change the encryption of an existing repository: neither could its backups be
// read then, nor could another one be made. The XRD refuses such changes too, but not where
// spec.backup itself is added or removed.
func (d *inputs) checkKey(was *observed, b *backing) error {
	if was == nil || !d.hasData() || !was.isAt(b.destination) {
		return nil
	}
	has, own := was.Spec.ForProvider.Encryption, was.isOwn(d.Name(backupKey))
	// A claim may name the generated key itself, which changes nothing.
	drawn := appsv1.SecretKeyReference{Name: d.Name(backupKey), Key: backup.EscrowKey}
	named := b.encryption != nil && *b.encryption != drawn
	const ways = "name another backup.destination with it, or undo the change"
	switch {
	case has == nil && b.encryption != nil:
		return compose.Invalidf("backup.encryption cannot be added: the backups of this database are not encrypted: %s", ways)
	case has != nil && b.encryption == nil && !own && has.SecretRef.Name != drawn.Name:
		return compose.Invalidf("backup.encryption cannot be removed: the backups of this database are encrypted with Secret %s: %s", has.SecretRef.Name, ways)
	case own && named:
		return compose.Invalidf("backup.encryption cannot be added: the backups of this database are encrypted with the key in Secret %s: %s", has.SecretRef.Name, ways)
	}
	return nil
}

// restoresOwn reports whether the claim continues the backups of an earlier cluster of its
// own name. Without a copy of their key these are not encrypted, and a repository is
// either encrypted or not.
func (d *inputs) restoresOwn() bool {
	from := d.spec.RestoreFrom
	return from != nil && from.BackupRef == nil && cmp.Or(from.Namespace, d.Namespace) == d.Namespace && from.Name == d.Claim
}

// observed is the part of a claim's Backup that concerns its key.
type observed struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		ForProvider struct {
			Destination backupv1.Destination `json:"destination"`
			Encryption  *backupv1.Encryption `json:"encryption"`
		} `json:"forProvider"`
	} `json:"spec"`
}

// observedBackup returns the claim's Backup, or nil.
func observedBackup(c *compose.Claim) (*observed, error) {
	o := &observed{}
	if found, err := c.ReadObserved(backups, o); err != nil || !found {
		return nil, err
	}
	return o, nil
}

// isOwn reports whether the Backup names the database's generated key, in a Secret. A Secret that a
// claim names itself may have the same name, but then the Backup does not have the annotation.
func (o *observed) isOwn(secret string) bool {
	if o == nil || o.Spec.ForProvider.Encryption == nil {
		return false
	}
	return o.Spec.ForProvider.Encryption.SecretRef.Name == secret && o.Metadata.Annotations[backup.EscrowAnnotation] != ""
}

// mountsKey reports whether the servers mount the database's generated key.
func (d *inputs) mountsKey(c *compose.Claim) (bool, error) {
	set := struct {
		Spec struct {
			Template struct {
				Spec struct {
					Volumes []corev1.Volume `json:"volumes"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}{}
	_, err := c.ReadObserved(d.server, &set)
	return slices.ContainsFunc(set.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == backup.KeyVolume && v.Secret != nil && v.Secret.SecretName == d.Name(backupKey)
	}), err
}

// isAt reports whether the backups are at a place, however that is reached.
func (o *observed) isAt(place backupv1.Destination) bool {
	was := o.Spec.ForProvider.Destination
	return was.Type == place.Type && was.Bucket == place.Bucket && was.Prefix == place.Prefix && was.Endpoint == place.Endpoint
}

// keptKey returns the key in escrow. If there is none it returns an error for a key
// that is lost, a new key for a new database if draws is true, and otherwise "", for
// backups that are not encrypted.
func (d *inputs) keptKey(c *compose.Claim, lost, draws bool) (key string, drawn bool, err error) {
	name := backup.EscrowName(d.Namespace, d.Claim)
	kept, err := requireSecretOf(c, escrowRequirement, name, backup.EscrowNamespace)
	if err != nil {
		return "", false, err
	}
	key, ok := compose.SecretValue(kept, backup.EscrowKey)
	switch {
	case ok:
		return key, false, nil
	case lost:
		return "", false, compose.Invalidf("backups are encrypted with the key in Secret %s, which does not exist, and neither does the copy of it: have the platform team create Secret %s in namespace %s with the key in %s", d.Name(backupKey), name, backup.EscrowNamespace, backup.EscrowKey)
	case kept != nil, d.hasData(), !draws:
		return "", false, nil
	}
	key, err = c.Secret(backupKey, backup.EscrowKey, compose.Source.Password)
	return key, true, err
}

// addKey declares the database's generated key and the Backup that requests a copy of it, and
// returns what servers come after. No server starts before there is a copy: what it archives could
// not be read once the namespace is lost, or the claim deleted.
func (d *cluster) addKey(add func(compose.Component)) (after []string) {
	if d.backup.key == "" {
		return nil
	}
	add(compose.Component{Name: backupKey, Part: credentials, Object: d.keySecret(), HoldsData: true})
	if !d.backup.watched {
		return []string{backupKey}
	}
	add(compose.Component{Name: backups, After: []string{backupKey}, Health: d.judgeEscrow, Make: func() compose.Object { return d.backupResource() }})
	return []string{backups}
}

// judgeEscrow judges the Backup by its copy of the key until there is a database. After that a
// condition reports the state of the backups.
func (d *cluster) judgeEscrow(observed *structpb.Struct) health.Status {
	if d.live.exists || d.hasData() {
		return alwaysHealthy(observed)
	}
	message := "Waiting for a copy of the key of the backups: provider-storeplane keeps it, unless it does not run or Backup " + d.backupName() + " is paused"
	generation := observed.GetFields()["metadata"].GetStructValue().GetFields()["generation"].GetNumberValue()
	for _, v := range observed.GetFields()["status"].GetStructValue().GetFields()["conditions"].GetListValue().GetValues() {
		c := v.GetStructValue().GetFields()
		if c["type"].GetStringValue() != backupv1.TypeEscrowed || c["observedGeneration"].GetNumberValue() != generation {
			continue
		}
		if c["status"].GetStringValue() == string(metav1.ConditionTrue) {
			return alwaysHealthy(observed)
		}
		message = c["message"].GetStringValue()
	}
	return health.Status{State: health.Progressing, Message: message}
}

// keySecret returns the Secret with the key of the backups. It is kept even if it is no longer
// declared, since without it they cannot be read.
func (d *cluster) keySecret() *corev1.Secret {
	return build.Secret(d.Meta(backupKey, d.server), map[string]string{backup.EscrowKey: d.backup.key})
}

// sourceKey returns the generated key of the backups to restore, for a claim that names no key: the copy in
// escrow, or the Backup's own in this namespace for an engine whose backups the provider makes. It
// is "" if there is neither, or if this namespace may not read it. For backups of another
// namespace the grants of the platform and of that namespace decide, whatever the bounds of the
// store's credentials allow.
func (d *inputs) sourceKey(c *compose.Claim, namespace, name string) (string, error) {
	if namespace != d.Namespace {
		if d.settings.Backup == nil {
			return "", nil
		}
		if err := d.checkRead(c, d.settings.Backup.Readable(d.Namespace), namespace); compose.IsInvalid(err) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	if !d.traits.Archives {
		return d.dumpsKey(c, namespace, name)
	}
	return d.escrowedKey(c, backup.EscrowName(namespace, name))
}

// dumpsKey returns the keys that the provider has generated for a Backup: its own in this namespace, and the
// copy in escrow if that differs.
func (d *inputs) dumpsKey(c *compose.Claim, namespace, name string) (string, error) {
	own, pending := "", error(nil)
	if namespace == d.Namespace {
		var s *structpb.Struct
		s, pending = requireSecret(c, sourceKeyRequirement, backup.LogicalKeyName(name))
		own, _ = compose.SecretValue(s, backup.EscrowKey)
	}
	kept, err := d.escrowedKey(c, backup.LogicalEscrowName(namespace, name))
	switch {
	case pending != nil || err != nil:
		return "", cmp.Or(pending, err)
	case own == "":
		return kept, nil
	case kept == "", own == kept:
		return own, nil
	}
	return strings.TrimSpace(own) + "\n" + kept, nil
}

// escrowedKey returns the key in a copy, or "".
func (d *inputs) escrowedKey(c *compose.Claim, name string) (string, error) {
	kept, err := requireSecretOf(c, sourceEscrowRequirement, name, backup.EscrowNamespace)
	key, _ := compose.SecretValue(kept, backup.EscrowKey)
	return key, err
}
