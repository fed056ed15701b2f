package v1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RestoreParameters is what a Restore does, once.
type RestoreParameters struct {
	// Source of the data.
	Source RestoreSource `json:"source"`

	// Target database.
	Target Database `json:"target"`

	// Overwrite drops what the target's databases hold. Without it they must be
	// empty.
	// +optional
	Overwrite bool `json:"overwrite,omitempty"`

	// Resources of the pod that restores. Defaults to requests of 100m and
	// 128Mi.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// RestoreSource names the backup to restore. The newest one is taken unless id or
// time is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.backupRef) != has(self.location)",message="source needs either a backupRef or a location"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !has(self.time)",message="source takes an id or a time, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.acceptUnsealed) || !self.acceptUnsealed || has(self.id)",message="source.acceptUnsealed needs the id of the backup that is accepted"
type RestoreSource struct {
	// BackupRef names a Backup of this namespace.
	// +optional
	BackupRef *LocalReference `json:"backupRef,omitempty"`

	// Location of backups whose Backup no longer exists.
	// +optional
	Location *Location `json:"location,omitempty"`

	// ID of the backup, as the Backup's status names it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`

	// Time: the newest backup that began at or before it is restored.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// AcceptUnsealed restores the encrypted backup that id names although it has no seal, as those
	// of releases before seals. Nothing proves that it was not written by another program with
	// access to the store: check that you know it, by its time and its size there.
	// +optional
	AcceptUnsealed bool `json:"acceptUnsealed,omitempty"`
}

// Location of the backups of one Backup in a store.
type Location struct {
	// Destination that the Backup had.
	Destination Destination `json:"destination"`

	// Name of the Backup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="source.location.name may only have small letters, digits, dots and hyphens"
	Name string `json:"name"`

	// Namespace of the Backup. Defaults to this one's. Another one has to grant it by a
	// RestoreGrant, or the platform team by the ClusterProviderConfig, where the
	// credentials are the platform's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="source.location.namespace may only have small letters, digits and hyphens"
	Namespace string `json:"namespace,omitempty"`

	// Encryption key of the backups, if they are encrypted. Without it that which was
	// generated for the Backup is used, with a ClusterProviderConfig's credentials.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`
}

// RestorePhase is the state of a Restore in one word.
//
// +kubebuilder:validation:Enum=Pending;Running;Completed;Failed
type RestorePhase string

// The phases.
const (
	RestorePending   RestorePhase = "Pending"
	RestoreRunning   RestorePhase = "Running"
	RestoreCompleted RestorePhase = "Completed"
	RestoreFailed    RestorePhase = "Failed"
)

// RestoreObservation is what was seen of the restore.
type RestoreObservation struct {
	// Phase in one word: Pending, Running, Completed or Failed.
	// +optional
	Phase RestorePhase `json:"phase,omitempty"`

	// Backup is the id of the backup that is restored.
	// +optional
	Backup string `json:"backup,omitempty"`

	// BackupTime is when that backup began.
	// +optional
	BackupTime *metav1.Time `json:"backupTime,omitempty"`

	// StartTime of the restore. From then on it cannot be changed.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime of the restore, failed or not.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Databases that were restored.
	// +optional
	Databases []string `json:"databases,omitempty"`

	// Rows that were restored in all tables or collections.
	// +optional
	Rows int64 `json:"rows,omitempty"`

	// Job that restores.
	// +optional
	Job string `json:"job,omitempty"`

	// Failure in the words of the tool that failed.
	// +optional
	Failure *Failure `json:"failure,omitempty"`

	// Message describes the progress.
	// +optional
	Message string `json:"message,omitempty"`
}

// RestoreSpec is the desired state of a Restore.
type RestoreSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what to restore, and where to.
	ForProvider RestoreParameters `json:"forProvider"`
}

// RestoreStatus is the observed state of a Restore.
type RestoreStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen of the restore.
	// +optional
	AtProvider RestoreObservation `json:"atProvider,omitempty"`
}

// Restore writes a backup into a database, once. It cannot be changed after it
// has started: make another one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,storeplane}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.atProvider.phase`
// +kubebuilder:printcolumn:name="Backup",type=string,JSONPath=`.status.atProvider.backup`
// +kubebuilder:printcolumn:name="Completed",type=date,JSONPath=`.status.atProvider.completionTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.atProvider.message`
// +kubebuilder:printcolumn:name="Synced",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name may have at most 40 characters, so that the names made from it fit"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.atProvider) || !has(oldSelf.status.atProvider.startTime) || self.spec.forProvider == oldSelf.spec.forProvider",message="a Restore that has started cannot be changed: make another one"
type Restore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec RestoreSpec `json:"spec"`

	// Status is what was observed.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status RestoreStatus `json:"status,omitempty"`
}

// RestoreList is a list of Restores.
//
// +kubebuilder:object:root=true
type RestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Restore `json:"items"`
}
