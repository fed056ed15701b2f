package v1

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// What crossplane-runtime asks of a configuration and of the record of its use.

// GetCondition of this ProviderConfig.
func (p *ProviderConfig) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return p.Status.GetCondition(t)
}

// SetConditions of this ProviderConfig.
func (p *ProviderConfig) SetConditions(c ...xpv2.Condition) { p.Status.SetConditions(c...) }

// GetUsers of this ProviderConfig.
func (p *ProviderConfig) GetUsers() int64 { return p.Status.Users }

// SetUsers of this ProviderConfig.
func (p *ProviderConfig) SetUsers(n int64) { p.Status.Users = n }

// GetCondition of this ClusterProviderConfig.
func (p *ClusterProviderConfig) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return p.Status.GetCondition(t)
}

// SetConditions of this ClusterProviderConfig.
func (p *ClusterProviderConfig) SetConditions(c ...xpv2.Condition) { p.Status.SetConditions(c...) }

// GetUsers of this ClusterProviderConfig.
func (p *ClusterProviderConfig) GetUsers() int64 { return p.Status.Users }

// SetUsers of this ClusterProviderConfig.
func (p *ClusterProviderConfig) SetUsers(n int64) { p.Status.Users = n }

// GetProviderConfigReference of this ProviderConfigUsage.
func (u *ProviderConfigUsage) GetProviderConfigReference() xpv2.ProviderConfigReference {
	return u.ProviderConfigReference
}

// SetProviderConfigReference of this ProviderConfigUsage.
func (u *ProviderConfigUsage) SetProviderConfigReference(r xpv2.ProviderConfigReference) {
	u.ProviderConfigReference = r
}

// GetResourceReference of this ProviderConfigUsage.
func (u *ProviderConfigUsage) GetResourceReference() xpv2.TypedReference { return u.ResourceReference }

// SetResourceReference of this ProviderConfigUsage.
func (u *ProviderConfigUsage) SetResourceReference(r xpv2.TypedReference) { u.ResourceReference = r }

// GetItems of this list.
func (l *ProviderConfigUsageList) GetItems() []resource.ProviderConfigUsage {
	out := make([]resource.ProviderConfigUsage, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
