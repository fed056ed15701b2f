// Package v1 holds how the provider reaches object stores: ProviderConfig and
// ClusterProviderConfig, and the records of who uses them.
//
// The package imports nothing else of Storeplane.
//
// +kubebuilder:object:generate=true
// +groupName=storeplane.example.com
// +versionName=v1
package v1
