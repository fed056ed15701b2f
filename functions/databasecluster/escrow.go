package databasecluster

import (
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// backupKey is the component of the Secret with a key of the database's own.
const backupKey = "backup-key"

// Names under which copies of keys are asked for.
const (
	escrowRequirement       = "backup-escrow"
	sourceEscrowRequirement = "restore-escrow"
)

// ownKey encrypts backups with a key of the database's own, where the installation has it so.
// What a repository began with it goes on with, whatever is set later: one that has a key
// keeps it, also where the Secret was deleted by mistake, and one that is plain stays plain.
func (d *inputs) ownKey(c *compose.Claim, b *backing, platforms bool) error {
	if b.encryption != nil {
		return nil
	}
	named, err := d.namedKey(c)
	if err != nil {
		return err
	}
	generates := platforms && b.watched && d.settings.Backup.Generates()
	has, isOwn, isNew := c.Observed(backupKey) != nil, named == d.Name(backupKey), !c.IsComposed(d.server)
	b.escrowed = generates || has || isOwn
	switch {
	case has, c.IsReview() && generates:
		b.key, err = c.Secret(backupKey, backup.EscrowKey, compose.Source.Password)
	case isOwn, platforms && b.watched && isNew:
		b.key, err = d.keptKey(c, isOwn, generates)
		b.escrowed = b.escrowed || b.key != ""
	}
	if b.key != "" {
		b.encryption = &appsv1.SecretKeyReference{Name: d.Name(backupKey), Key: backup.EscrowKey}
	}
	return err
}

// namedKey is the Secret that the claim's Backup names, or "".
func (d *inputs) namedKey(c *compose.Claim) (string, error) {
	b := struct {
		Spec struct {
			ForProvider struct {
				Encryption *backupv1.Encryption `json:"encryption"`
			} `json:"forProvider"`
		} `json:"spec"`
	}{}
	_, err := c.ReadObserved(backups, &b)
	if e := b.Spec.ForProvider.Encryption; e != nil {
		return e.SecretRef.Name, err
	}
	return "", err
}

// keptKey is the one in escrow, or a new one for a database that has none and is new, where
// new ones are drawn. It is "" for one that is plain.
func (d *inputs) keptKey(c *compose.Claim, lost, draws bool) (string, error) {
	kept, err := requireSecretOf(c, escrowRequirement, backup.EscrowName(d.Namespace, d.Claim), backup.EscrowNamespace)
	if err != nil {
		return "", err
	}
	key, ok := compose.SecretValue(kept, backup.EscrowKey)
	switch {
	case ok:
		return key, nil
	case lost:
		return "", compose.Invalidf("backups are encrypted with the key in Secret %s, which does not exist, and namespace %s has no copy of it: create it with its key %s", d.Name(backupKey), backup.EscrowNamespace, backup.EscrowKey)
	case kept != nil, d.hasData(), !draws:
		return "", nil
	}
	return c.Secret(backupKey, backup.EscrowKey, compose.Source.Password)
}

// keySecret of the backups. It outlives a mistake: without it they cannot be read.
func (d *cluster) keySecret() *corev1.Secret {
	return build.Secret(d.Meta(backupKey, d.server), map[string]string{backup.EscrowKey: d.backup.key})
}

// sourceKey is the copy of the key of another database's backups, nil where there is none: it
// is asked for with the platform's credentials alone, which are bound to what may be restored.
func sourceKey(c *compose.Claim, namespace, name string) (*structpb.Struct, error) {
	return requireSecretOf(c, sourceEscrowRequirement, backup.EscrowName(namespace, name), backup.EscrowNamespace)
}
