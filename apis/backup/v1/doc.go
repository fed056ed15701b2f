// Package v1 holds the managed resources that copy databases into a store and
// back: Backup and Restore. cmd/provider reconciles them; what they do is done by
// Jobs in their own namespace, which run the image backup.
//
// The package imports nothing else of Storeplane.
//
// +kubebuilder:object:generate=true
// +groupName=backup.example.com
// +versionName=v1
package v1
