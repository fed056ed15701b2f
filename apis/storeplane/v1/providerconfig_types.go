package v1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CredentialsSource is where the credentials of an object store come from.
//
// +kubebuilder:validation:Enum=None;Secret;Environment;InjectedIdentity
type CredentialsSource string

// The sources of credentials.
const (
	// CredentialsNone gives none: each Backup names a Secret, or the store needs
	// none.
	CredentialsNone CredentialsSource = "None"

	// CredentialsSecret copies a Secret.
	CredentialsSecret CredentialsSource = "Secret"

	// CredentialsEnvironment copies the provider's own environment variables of
	// the same names as the Secret's keys.
	CredentialsEnvironment CredentialsSource = "Environment"

	// CredentialsInjectedIdentity runs pods under a ServiceAccount that the
	// cloud knows.
	CredentialsInjectedIdentity CredentialsSource = "InjectedIdentity"
)

// BackupEncryption is what becomes of logical backups whose Backup names no key.
//
// +kubebuilder:validation:Enum=Generated;None
type BackupEncryption string

// The kinds of encryption.
const (
	// EncryptionGenerated draws a key for each Backup, and keeps a copy of it.
	EncryptionGenerated BackupEncryption = "Generated"

	// EncryptionNone leaves backups plain.
	EncryptionNone BackupEncryption = "None"
)

// ProviderConfigSpec defines how an object store is reached.
//
// +kubebuilder:validation:XValidation:rule="!has(self.endpoint) || !self.endpoint.startsWith('http://') || has(self.insecure) && self.insecure",message="endpoint has no TLS, so that credentials and data go in plain text: use https, or set insecure"
type ProviderConfigSpec struct {
	// Endpoint URL of a store that is not the cloud provider's own.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:_\[\]-]+/?$`
	Endpoint string `json:"endpoint,omitempty"`

	// Insecure allows an endpoint without TLS (http): credentials and data can be read
	// on the way by anyone who reads the traffic.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// Region of the buckets.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]*$')",message="region may only have letters, digits and hyphens"
	Region string `json:"region,omitempty"`

	// Bucket that the credentials are for. Those of a ClusterProviderConfig (source
	// Secret or Environment) are used for this bucket alone, at this endpoint and below
	// this prefix, and for none where it is not set.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9][A-Za-z0-9._-]*)?$')",message="bucket may only have letters, digits, dots, hyphens and underscores"
	Bucket string `json:"bucket,omitempty"`

	// Prefix of all names in that bucket.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.contains('..') && !self.contains('//')",message="prefix must be a relative path like team/backups"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9!_.=@+-]+/?)*$')",message="prefix may only have letters, digits, slashes and !_.=@+-"
	Prefix string `json:"prefix,omitempty"`

	// Grants let Restores of one namespace read backups of another with the
	// credentials of this ClusterProviderConfig: those of a namespace that is lost, for
	// example. Without one a Restore reads only what its own namespace has backed up,
	// and what RestoreGrants of others let it.
	// +optional
	// +listType=map
	// +listMapKey=of
	// +kubebuilder:validation:MaxItems=256
	Grants []RestoreGrant `json:"grants,omitempty"`

	// Encryption of logical backups whose Backup names no key, with the credentials of
	// a ClusterProviderConfig (source Secret or Environment). Generated creates a key for
	// each Backup that has no backups yet, in the Backup's namespace, and a copy in
	// namespace storeplane-escrow; None leaves them plain. Defaults to Generated. A Backup
	// that has begun with a key keeps it.
	// +optional
	Encryption BackupEncryption `json:"encryption,omitempty"`

	// Credentials of the store.
	// +optional
	// +kubebuilder:default={source: None}
	Credentials Credentials `json:"credentials,omitempty"`
}

// RestoreGrant lets other namespaces restore what a namespace has backed up.
type RestoreGrant struct {
	// Of is the namespace whose backups may be read. It need not exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Of string `json:"of"`

	// To are the namespaces whose Restores may read them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	To []string `json:"to"`
}

// Credentials of an object store. They are copied into a Secret in the namespace
// of each Backup that uses them, for its pods to mount: what they may do is what
// that namespace may do.
//
// +kubebuilder:validation:XValidation:rule="(self.source == 'Secret') == has(self.secretRef)",message="source Secret and credentials.secretRef require each other"
// +kubebuilder:validation:XValidation:rule="(self.source == 'InjectedIdentity') == has(self.serviceAccountName)",message="source InjectedIdentity and credentials.serviceAccountName require each other"
type Credentials struct {
	// Source of the credentials: None, Secret, Environment (the provider's own, for a
	// ClusterProviderConfig alone) or InjectedIdentity (the cloud's, by a
	// ServiceAccount).
	// +kubebuilder:default=None
	Source CredentialsSource `json:"source"`

	// SecretRef names the Secret. Its keys are those of a Backup's destination.
	// A ProviderConfig's must be in its own namespace.
	// +optional
	SecretRef *xpv2.SecretReference `json:"secretRef,omitempty"`

	// PerNamespace states, of a ClusterProviderConfig's secretRef, that there is a Secret
	// for each namespace of Backups, whose name follows after a hyphen: store-shop.
	// +optional
	PerNamespace bool `json:"perNamespace,omitempty"`

	// Shared states, of a ClusterProviderConfig's source Secret or Environment, that the
	// same credentials are meant for all namespaces: a user who may read Secrets in one that
	// has a Backup can then read and delete the backups of all.
	// +optional
	Shared bool `json:"shared,omitempty"`

	// ServiceAccountName of the Backup's namespace that the pods run under.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// ProviderConfigStatus is the observed state of a ProviderConfig.
type ProviderConfigStatus struct {
	xpv2.ProviderConfigStatus `json:",inline"`
}

// ProviderConfig defines how the Backups of its namespace reach an object store.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.credentials) || !has(self.spec.credentials.perNamespace) && !has(self.spec.credentials.shared)",message="credentials.perNamespace and shared are of a ClusterProviderConfig: a ProviderConfig is of one namespace"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.encryption)",message="encryption is of a ClusterProviderConfig: with a ProviderConfig name a key in the Backup's spec.forProvider.encryption"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,providerconfig,storeplane}
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Credentials",type=string,JSONPath=`.spec.credentials.source`
// +kubebuilder:printcolumn:name="Users",type=integer,JSONPath=`.status.users`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is how the store is reached.
	Spec ProviderConfigSpec `json:"spec"`

	// Status is who uses it.
	// +optional
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigList is a list of ProviderConfigs.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderConfig `json:"items"`
}

// ClusterProviderConfig defines how the Backups of all namespaces reach an object
// store. The one named default is used where none is named.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.credentials) || self.spec.credentials.source != 'Secret' || (has(self.spec.credentials.perNamespace) && self.spec.credentials.perNamespace) != (has(self.spec.credentials.shared) && self.spec.credentials.shared) || oldSelf.hasValue() && oldSelf.value().spec.?credentials.?source.orValue('None') == 'Secret' && !oldSelf.value().spec.?credentials.?perNamespace.orValue(false) && !oldSelf.value().spec.?credentials.?shared.orValue(false) && !self.spec.?credentials.?perNamespace.orValue(false) && !self.spec.?credentials.?shared.orValue(false)",message="credentials of source Secret need either perNamespace: true, for a Secret <name>-<namespace> for the Backups of each namespace, or shared: true, for one that lets a user who may read Secrets in one of them read and delete the backups of all",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="!has(self.spec.credentials) || self.spec.credentials.source != 'Environment' || has(self.spec.credentials.shared) && self.spec.credentials.shared || oldSelf.hasValue() && oldSelf.value().spec.?credentials.?source.orValue('None') == 'Environment' && !oldSelf.value().spec.?credentials.?shared.orValue(false)",message="credentials of source Environment are for all namespaces, so that a user who may read Secrets in one that has a Backup can read and delete the backups of all: set shared: true",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="!has(self.spec.credentials) || self.spec.credentials.source == 'Secret' || !has(self.spec.credentials.perNamespace) || !self.spec.credentials.perNamespace",message="credentials.perNamespace requires source Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.encryption) || self.spec.encryption != 'Generated' || has(self.spec.credentials) && self.spec.credentials.source in ['Secret', 'Environment']",message="encryption: Generated goes with credentials of source Secret or Environment, which are the platform's"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,providerconfig,storeplane}
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Credentials",type=string,JSONPath=`.spec.credentials.source`
// +kubebuilder:printcolumn:name="Users",type=integer,JSONPath=`.status.users`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is how the store is reached.
	Spec ProviderConfigSpec `json:"spec"`

	// Status is who uses it.
	// +optional
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// ClusterProviderConfigList is a list of ClusterProviderConfigs.
//
// +kubebuilder:object:root=true
type ClusterProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterProviderConfig `json:"items"`
}

// ProviderConfigUsage records that a managed resource uses a ProviderConfig.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,storeplane}
// +kubebuilder:printcolumn:name="Config",type=string,JSONPath=`.providerConfigRef.name`
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.resourceRef.name`
type ProviderConfigUsage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	xpv2.TypedProviderConfigUsage `json:",inline"`
}

// ProviderConfigUsageList is a list of ProviderConfigUsages.
//
// +kubebuilder:object:root=true
type ProviderConfigUsageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderConfigUsage `json:"items"`
}
