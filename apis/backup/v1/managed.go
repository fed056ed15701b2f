package v1

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// What crossplane-runtime asks of a managed resource. The fields it is about are
// embedded, but only their owner may have methods that the runtime can find.

// GetCondition of this Backup.
func (b *Backup) GetCondition(t xpv2.ConditionType) xpv2.Condition { return b.Status.GetCondition(t) }

// SetConditions of this Backup.
func (b *Backup) SetConditions(c ...xpv2.Condition) { b.Status.SetConditions(c...) }

// GetManagementPolicies of this Backup.
func (b *Backup) GetManagementPolicies() xpv2.ManagementPolicies { return b.Spec.ManagementPolicies }

// SetManagementPolicies of this Backup.
func (b *Backup) SetManagementPolicies(p xpv2.ManagementPolicies) { b.Spec.ManagementPolicies = p }

// GetProviderConfigReference of this Backup.
func (b *Backup) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return b.Spec.ProviderConfigReference
}

// SetProviderConfigReference of this Backup.
func (b *Backup) SetProviderConfigReference(r *xpv2.ProviderConfigReference) {
	b.Spec.ProviderConfigReference = r
}

// GetWriteConnectionSecretToReference of this Backup.
func (b *Backup) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return b.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference of this Backup.
func (b *Backup) SetWriteConnectionSecretToReference(r *xpv2.LocalSecretReference) {
	b.Spec.WriteConnectionSecretToReference = r
}

// GetObservedGeneration of this Backup.
func (b *Backup) GetObservedGeneration() int64 { return b.Status.GetObservedGeneration() }

// SetObservedGeneration of this Backup.
func (b *Backup) SetObservedGeneration(g int64) { b.Status.SetObservedGeneration(g) }

// GetLastHandledReconcileAt of this Backup.
func (b *Backup) GetLastHandledReconcileAt() string { return b.Status.GetLastHandledReconcileAt() }

// SetLastHandledReconcileAt of this Backup.
func (b *Backup) SetLastHandledReconcileAt(token string) { b.Status.SetLastHandledReconcileAt(token) }

// GetCondition of this Restore.
func (r *Restore) GetCondition(t xpv2.ConditionType) xpv2.Condition { return r.Status.GetCondition(t) }

// SetConditions of this Restore.
func (r *Restore) SetConditions(c ...xpv2.Condition) { r.Status.SetConditions(c...) }

// GetManagementPolicies of this Restore.
func (r *Restore) GetManagementPolicies() xpv2.ManagementPolicies { return r.Spec.ManagementPolicies }

// SetManagementPolicies of this Restore.
func (r *Restore) SetManagementPolicies(p xpv2.ManagementPolicies) { r.Spec.ManagementPolicies = p }

// GetProviderConfigReference of this Restore.
func (r *Restore) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return r.Spec.ProviderConfigReference
}

// SetProviderConfigReference of this Restore.
func (r *Restore) SetProviderConfigReference(ref *xpv2.ProviderConfigReference) {
	r.Spec.ProviderConfigReference = ref
}

// GetWriteConnectionSecretToReference of this Restore.
func (r *Restore) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return r.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference of this Restore.
func (r *Restore) SetWriteConnectionSecretToReference(ref *xpv2.LocalSecretReference) {
	r.Spec.WriteConnectionSecretToReference = ref
}

// GetObservedGeneration of this Restore.
func (r *Restore) GetObservedGeneration() int64 { return r.Status.GetObservedGeneration() }

// SetObservedGeneration of this Restore.
func (r *Restore) SetObservedGeneration(g int64) { r.Status.SetObservedGeneration(g) }

// GetLastHandledReconcileAt of this Restore.
func (r *Restore) GetLastHandledReconcileAt() string { return r.Status.GetLastHandledReconcileAt() }

// SetLastHandledReconcileAt of this Restore.
func (r *Restore) SetLastHandledReconcileAt(token string) { r.Status.SetLastHandledReconcileAt(token) }

// GetItems of this list.
func (l *BackupList) GetItems() []resource.Managed {
	out := make([]resource.Managed, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// GetItems of this list.
func (l *RestoreList) GetItems() []resource.Managed {
	out := make([]resource.Managed, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
