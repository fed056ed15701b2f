// Package v1 holds the managed resource that brings configuration to workloads:
// AppConfig. cmd/provider reconciles it.
//
// The package imports nothing else of Storeplane.
//
// +kubebuilder:object:generate=true
// +groupName=config.example.com
// +versionName=v1
package v1
