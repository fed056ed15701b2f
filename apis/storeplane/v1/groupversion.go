package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "storeplane.example.com", Version: "v1"}

// SchemeBuilder adds the kinds of this package to a scheme.
var SchemeBuilder = (&scheme.Builder{GroupVersion: GroupVersion}).Register(
	&ProviderConfig{}, &ProviderConfigList{},
	&ClusterProviderConfig{}, &ClusterProviderConfigList{},
	&ProviderConfigUsage{}, &ProviderConfigUsageList{},
)

// Kinds of this package.
const (
	ProviderConfigKind        = "ProviderConfig"
	ClusterProviderConfigKind = "ClusterProviderConfig"
	ProviderConfigUsageKind   = "ProviderConfigUsage"
)
