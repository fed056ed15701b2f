package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "backup.example.com", Version: "v1"}

// SchemeBuilder adds the kinds of this package to a scheme.
var SchemeBuilder = (&scheme.Builder{GroupVersion: GroupVersion}).Register(&Backup{}, &BackupList{}, &Restore{}, &RestoreList{}, &RestoreGrant{}, &RestoreGrantList{})

// Kinds of this package.
const (
	BackupKind       = "Backup"
	RestoreKind      = "Restore"
	RestoreGrantKind = "RestoreGrant"
)

// GroupVersionKinds of this package.
var (
	BackupGroupVersionKind  = GroupVersion.WithKind(BackupKind)
	RestoreGroupVersionKind = GroupVersion.WithKind(RestoreKind)
)
