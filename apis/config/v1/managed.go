package v1

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// What crossplane-runtime asks of a managed resource. The fields it is about are
// embedded, but only their owner may have methods that the runtime can find.

// GetCondition of this AppConfig.
func (a *AppConfig) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return a.Status.GetCondition(t)
}

// SetConditions of this AppConfig.
func (a *AppConfig) SetConditions(c ...xpv2.Condition) { a.Status.SetConditions(c...) }

// GetManagementPolicies of this AppConfig.
func (a *AppConfig) GetManagementPolicies() xpv2.ManagementPolicies { return a.Spec.ManagementPolicies }

// SetManagementPolicies of this AppConfig.
func (a *AppConfig) SetManagementPolicies(p xpv2.ManagementPolicies) { a.Spec.ManagementPolicies = p }

// GetProviderConfigReference of this AppConfig.
func (a *AppConfig) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return a.Spec.ProviderConfigReference
}

// SetProviderConfigReference of this AppConfig.
func (a *AppConfig) SetProviderConfigReference(r *xpv2.ProviderConfigReference) {
	a.Spec.ProviderConfigReference = r
}

// GetWriteConnectionSecretToReference of this AppConfig.
func (a *AppConfig) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return a.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference of this AppConfig.
func (a *AppConfig) SetWriteConnectionSecretToReference(r *xpv2.LocalSecretReference) {
	a.Spec.WriteConnectionSecretToReference = r
}

// GetObservedGeneration of this AppConfig.
func (a *AppConfig) GetObservedGeneration() int64 { return a.Status.GetObservedGeneration() }

// SetObservedGeneration of this AppConfig.
func (a *AppConfig) SetObservedGeneration(g int64) { a.Status.SetObservedGeneration(g) }

// GetLastHandledReconcileAt of this AppConfig.
func (a *AppConfig) GetLastHandledReconcileAt() string { return a.Status.GetLastHandledReconcileAt() }

// SetLastHandledReconcileAt of this AppConfig.
func (a *AppConfig) SetLastHandledReconcileAt(token string) {
	a.Status.SetLastHandledReconcileAt(token)
}

// GetItems of this list.
func (l *AppConfigList) GetItems() []resource.Managed {
	out := make([]resource.Managed, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
