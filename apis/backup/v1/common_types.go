package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Engine of a database.
//
// +kubebuilder:validation:Enum=postgresql;mysql;mongodb
type Engine string

// The engines. MariaDB is spoken to as mysql, FerretDB as mongodb.
const (
	PostgreSQL Engine = "postgresql"
	MySQL      Engine = "mysql"
	MongoDB    Engine = "mongodb"
)

// Database is where data is read from or written to.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'mongodb' || !has(self.connection.databaseClusterRef)",message="connection.databaseClusterRef needs type postgresql or mysql"
// +kubebuilder:validation:XValidation:rule="self.type == 'postgresql' || !has(self.version)",message="version is for type postgresql"
type Database struct {
	// Type of the database: postgresql, mysql (MariaDB too) or mongodb.
	Type Engine `json:"type"`

	// Version of a postgresql server, which chooses the tools: pg_dump reads
	// servers of its own major version and older ones. Defaults to the
	// DatabaseCluster's, else to 17.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+){0,2}$`
	Version string `json:"version,omitempty"`

	// Connection to the database.
	Connection Connection `json:"connection"`

	// Databases to take, by name. Defaults to the one that the connection
	// names, and without one there to all but the server's own.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Databases []string `json:"databases,omitempty"`
}

// Connection names a DatabaseCluster, or a Secret with a connection.
//
// +kubebuilder:validation:XValidation:rule="has(self.databaseClusterRef) != has(self.secretRef)",message="connection needs either a databaseClusterRef or a secretRef"
type Connection struct {
	// DatabaseClusterRef names a DatabaseCluster of this namespace.
	// +optional
	DatabaseClusterRef *LocalReference `json:"databaseClusterRef,omitempty"`

	// SecretRef names a Secret of this namespace with either a URI, or
	// username, password, host, port and dbname. Its ca.crt, if it has one, is
	// what the server's certificate is checked against.
	// +optional
	SecretRef *ConnectionSecret `json:"secretRef,omitempty"`
}

// ConnectionSecret names a Secret with a connection to a database.
type ConnectionSecret struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key that holds the URI, for example
	// postgresql://user:password@host:5432/dbname. Defaults to uri; a Secret
	// without the key is read by its parts.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:default=uri
	Key string `json:"key,omitempty"`
}

// LocalReference names an object of this namespace.
type LocalReference struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SecretKey is one key of a Secret of this namespace.
type SecretKey struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// StoreType is the kind of a store.
//
// +kubebuilder:validation:Enum=s3;gcs;azure;volume
type StoreType string

// The kinds of stores.
const (
	S3     StoreType = "s3"
	GCS    StoreType = "gcs"
	Azure  StoreType = "azure"
	Volume StoreType = "volume"
)

// Destination is a place in an object store, or a volume.
//
// The keys of its Secret are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, where
// needed, AWS_SESSION_TOKEN for s3; credentials.json, a service account's key,
// for gcs; AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or
// AZURE_STORAGE_SAS_TOKEN for azure. ca.crt, in any of them, is the authority of
// an endpoint whose certificate no public one has signed.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'volume' || !has(self.endpoint) && !has(self.region) && !has(self.secretRef)",message="destination.endpoint, region and secretRef are for object stores, not for type volume"
// +kubebuilder:validation:XValidation:rule="!has(self.endpoint) || !self.endpoint.startsWith('http://') || has(self.insecure) && self.insecure",message="destination.endpoint has no TLS, so that credentials and data go in plain text: use https, or set destination.insecure"
type Destination struct {
	// Type of the store.
	Type StoreType `json:"type"`

	// Bucket (s3, gcs), container (azure) or volume claim of this namespace
	// (volume). It must exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9][A-Za-z0-9._-]*)?$')",message="destination.bucket may only have letters, digits, dots, hyphens and underscores"
	Bucket string `json:"bucket"`

	// Prefix of all names in the bucket. The backups of one Backup lie under
	// <prefix>/<namespace>/<name>/.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.contains('..') && !self.contains('//')",message="destination.prefix must be a relative path like team/backups"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9!_.=@+-]+/?)*$')",message="destination.prefix may only have letters, digits, slashes and !_.=@+-"
	Prefix string `json:"prefix,omitempty"`

	// Endpoint URL of a store that is not the cloud provider's own. Defaults to
	// the ProviderConfig's.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:_\[\]-]+/?$`
	Endpoint string `json:"endpoint,omitempty"`

	// Insecure allows an endpoint without TLS (http): credentials and data can be read
	// on the way by anyone who reads the traffic. The physical backups of PostgreSQL
	// allow none.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// Region of the bucket. Defaults to the ProviderConfig's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]*$')",message="destination.region may only have letters, digits and hyphens"
	Region string `json:"region,omitempty"`

	// SecretRef names the Secret of this namespace with the store's
	// credentials. Defaults to the ProviderConfig's credentials.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}

// Encryption of what leaves the pod.
type Encryption struct {
	// SecretRef names the key. It is an age identity (AGE-SECRET-KEY-1…, see
	// https://age-encryption.org), and for method physical with type postgresql a
	// passphrase. Backups cannot be restored without it: keep a copy elsewhere.
	SecretRef SecretKey `json:"secretRef"`
}

// Failure in the words of the tool that failed.
type Failure struct {
	// Time of the failure.
	Time metav1.Time `json:"time"`

	// Reason in one word, for example StoreUnreachable.
	Reason string `json:"reason"`

	// Message of the failure. It contains no secrets.
	Message string `json:"message"`
}
