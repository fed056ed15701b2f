package backup

import (
	"context"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// related finds the Backups that a change of an object concerns. All is read from the cache, where
// only a mistake in this code causes an error.
type related struct{ client client.Client }

// toSecret returns the Backups that read a Secret: those that name it, those whose configuration does,
// and that whose key it is a copy of.
func (r *related) toSecret(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetNamespace() == backup.EscrowNamespace {
		return r.find(ctx, "", func(b *backupv1.Backup) bool { return isEscrowOf(o.GetName(), b) })
	}
	out := r.find(ctx, o.GetNamespace(), func(b *backupv1.Backup) bool { return slices.Contains(secretsOf(b), o.GetName()) })
	configs, all := &storeplanev1.ProviderConfigList{}, &storeplanev1.ClusterProviderConfigList{}
	if r.client.List(ctx, configs, client.InNamespace(o.GetNamespace())) == nil {
		for i := range configs.Items {
			if c := &configs.Items[i]; names(&c.Spec.Credentials, o, "") {
				out = append(out, r.toConfig(ctx, c)...)
			}
		}
	}
	if r.client.List(ctx, all) != nil {
		return out
	}
	for i := range all.Items {
		c := &all.Items[i]
		if !c.Spec.Credentials.PerNamespace {
			if names(&c.Spec.Credentials, o, "") {
				out = append(out, r.toConfig(ctx, c)...)
			}
			continue
		}
		out = append(out, r.find(ctx, "", func(b *backupv1.Backup) bool {
			return refersTo(b, storeplanev1.ClusterProviderConfigKind, "", c.Name) && names(&c.Spec.Credentials, o, "-"+b.Namespace)
		})...)
	}
	return out
}

// toConfig returns the Backups that refer to a ProviderConfig or ClusterProviderConfig.
func (r *related) toConfig(ctx context.Context, o client.Object) []reconcile.Request {
	kind := storeplanev1.ProviderConfigKind
	if o.GetNamespace() == "" {
		kind = storeplanev1.ClusterProviderConfigKind
	}
	return r.find(ctx, o.GetNamespace(), func(b *backupv1.Backup) bool { return refersTo(b, kind, o.GetNamespace(), o.GetName()) })
}

// find returns requests for the Backups of a namespace, or of all, that a function selects.
func (r *related) find(ctx context.Context, namespace string, selects func(*backupv1.Backup) bool) []reconcile.Request {
	l := &backupv1.BackupList{}
	if err := r.client.List(ctx, l, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range l.Items {
		if selects(&l.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
	}
	return out
}

// secretsOf returns the names of the Secrets in its own namespace that a Backup reads.
func secretsOf(b *backupv1.Backup) []string {
	p := &b.Spec.ForProvider
	out := []string{storeSecretName(b.Name), backup.LogicalKeyName(b.Name)}
	if c := p.Source.Connection; c.SecretRef != nil {
		out = append(out, c.SecretRef.Name)
	} else if c.DatabaseClusterRef != nil {
		out = append(out, c.DatabaseClusterRef.Name+"-connection")
		if p.Source.Type == backupv1.MySQL {
			out = append(out, backup.DumperSecret(c.DatabaseClusterRef.Name))
		}
	}
	if p.Destination.SecretRef != nil {
		out = append(out, p.Destination.SecretRef.Name)
	}
	if p.Encryption != nil {
		out = append(out, p.Encryption.SecretRef.Name)
	}
	return out
}

// isEscrowOf reports whether a Secret in escrow has the name of the copy of a Backup's key.
func isEscrowOf(name string, b *backupv1.Backup) bool {
	cluster := b.Spec.ForProvider.Source.Connection.DatabaseClusterRef
	return name == backup.LogicalEscrowName(b.Namespace, b.Name) || cluster != nil && name == backup.EscrowName(b.Namespace, cluster.Name)
}

// refersTo reports whether a Backup refers to a configuration, which it does by default to the
// ClusterProviderConfig default.
func refersTo(b *backupv1.Backup, kind, namespace, name string) bool {
	ref := b.Spec.ProviderConfigReference
	if ref == nil {
		ref = &xpv2.ProviderConfigReference{Kind: storeplanev1.ClusterProviderConfigKind, Name: "default"}
	}
	return ref.Kind == kind && ref.Name == name && (namespace == "" || namespace == b.Namespace)
}

// names reports whether credentials name a Secret, by a name with a suffix.
func names(c *storeplanev1.Credentials, secret client.Object, suffix string) bool {
	ref := c.SecretRef
	return ref != nil && ref.Namespace == secret.GetNamespace() && ref.Name+suffix == secret.GetName()
}
