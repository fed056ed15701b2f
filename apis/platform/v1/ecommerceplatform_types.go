package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// EcommercePlatformSpec is a whole shop.
//
// +kubebuilder:validation:XValidation:rule="!has(self.environment) || self.environment != 'production' || !has(self.frontend.replicas) || self.frontend.replicas <= 10",message="frontend.replicas may be at most 10 in production"
// +kubebuilder:validation:XValidation:rule="!has(self.environment) || self.environment != 'production' || !has(self.backend.replicas) || self.backend.replicas <= 10",message="backend.replicas may be at most 10 in production"
// +kubebuilder:validation:XValidation:rule="!has(self.environment) || self.environment != 'production' || !has(self.frontend.autoscaling) || self.frontend.autoscaling.maxReplicas <= 10",message="frontend.autoscaling.maxReplicas may be at most 10 in production"
// +kubebuilder:validation:XValidation:rule="!has(self.environment) || self.environment != 'production' || !has(self.backend.autoscaling) || self.backend.autoscaling.maxReplicas <= 10",message="backend.autoscaling.maxReplicas may be at most 10 in production"
// +kubebuilder:validation:XValidation:rule="!has(self.environment) || self.environment != 'production' || !has(self.backend.workers) || self.backend.workers.all(w, (!has(w.replicas) || w.replicas <= 10) && (!has(w.autoscaling) || w.autoscaling.maxReplicas <= 10))",message="backend.workers: replicas and autoscaling.maxReplicas may be at most 10 in production"
// +kubebuilder:validation:XValidation:rule="!has(self.environment) || self.environment != 'production' || !has(self.frontend.podSecurity) || self.frontend.podSecurity != 'baseline'",message="frontend.podSecurity may be baseline only where environment is not production: use an image that runs as a user other than root"
// +kubebuilder:validation:XValidation:rule="!has(self.environment) || self.environment != 'production' || !has(self.backend.podSecurity) || self.backend.podSecurity != 'baseline'",message="backend.podSecurity may be baseline only where environment is not production: use an image that runs as a user other than root"
type EcommercePlatformSpec struct {
	// Environment whose defaults apply: sizes, replication, limits,
	// protection.
	// +optional
	// +kubebuilder:default=development
	Environment appsv1.Environment `json:"environment,omitempty"`

	// Maintenance is when a new release of Storeplane, or new settings of the installation, may
	// replace the claim's pods. Defaults to the installation's window for the environment, and
	// without one to any time.
	// +optional
	Maintenance *appsv1.Maintenance `json:"maintenance,omitempty"`

	// Frontend is the tier that customers reach. The environment variable
	// BACKEND_URL has the address of the backend.
	Frontend Frontend `json:"frontend"`

	// Backend is the tier behind the frontend. The environment variables
	// DATABASE_URL and REDIS_URL, set from Secrets, have the addresses of the
	// database and the cache.
	Backend Backend `json:"backend"`

	// Database of the shop.
	// +optional
	// +kubebuilder:default={}
	Database *Database `json:"database,omitempty"`

	// Cache of the shop: Redis.
	// +optional
	// +kubebuilder:default={}
	Cache *Cache `json:"cache,omitempty"`

	// Monitoring of all of the shop.
	// +optional
	// +kubebuilder:default={}
	Monitoring *appsv1.Monitoring `json:"monitoring,omitempty"`

	// Ingress exposes the frontend outside the cluster, once all else is
	// healthy.
	// +optional
	Ingress *appsv1.Ingress `json:"ingress,omitempty"`

	// DeletionProtection refuses the deletion of the claim, and of its
	// database, until it is set to false. Defaults to true in production, else
	// false.
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty"`

	// Config is handed to frontend and backend as environment variables, and
	// kept in the ConfigMap <claim>-config. A change rolls the backend's pods,
	// then the frontend's; if they do not become healthy with it, the last
	// config that worked is put back.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Config map[string]string `json:"config,omitempty"`
}

// Frontend is the tier that customers reach.
type Frontend struct {
	appsv1.Workload `json:",inline"`

	// Replicas is the number of pods: at least 1, in production at most 10.
	// Defaults to 1 in development, 2 in staging and production. Ignored
	// while autoscaling is set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`
}

// Backend is the tier behind the frontend.
type Backend struct {
	appsv1.Workload `json:",inline"`

	// Replicas is the number of pods: at least 1, in production at most 10.
	// Defaults to 1 in development, 2 in staging and production. Ignored
	// while autoscaling is set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// Migration runs to its end before a new image is rolled out.
	// +optional
	Migration *appsv1.Migration `json:"migration,omitempty"`

	// CronJobs of the backend.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	CronJobs []appsv1.CronJob `json:"cronJobs,omitempty"`

	// Workers of the backend: pods without a Service, of its image and with its
	// environment. They reach the database and the cache too.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Workers []appsv1.Worker `json:"workers,omitempty"`
}

// Database of a shop: a DatabaseCluster.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.storage) || has(self.storage)",message="database.storage may not be removed once it is set, since volumes may not shrink"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.storageClassName) == has(self.storageClassName)",message="database.storageClassName is immutable"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.restoreFrom) == has(self.restoreFrom)",message="database.restoreFrom is immutable"
type Database struct {
	appsv1.DatabaseOptions `json:",inline"`

	// Type of the database: postgresql, or mysql, which is experimental. It cannot
	// be changed.
	// +optional
	// +kubebuilder:default=postgresql
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="database.type is immutable: claim a new EcommercePlatform and move the data"
	Type appsv1.Engine `json:"type,omitempty"`

	// Version of the database: 17 or 17.2 of postgresql, 9.7 or 9.7.4 of mysql.
	// Defaults to 17 with postgresql, 9.7 with mysql.
	// +optional
	Version appsv1.Version `json:"version,omitempty"`

	// Storage of each database server, as a Kubernetes quantity. It may grow,
	// never shrink. Defaults to 10Gi in development, 50Gi in staging, 100Gi
	// in production.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="database.storage must be a quantity above zero, like 20Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(self) || !isQuantity(oldSelf) || quantity(self).compareTo(quantity(oldSelf)) >= 0",message="database.storage may not shrink",messageExpression="'database.storage may not shrink: ' + oldSelf + ' to ' + self"
	Storage string `json:"storage,omitempty"`

	// Size is the number of database servers. Defaults to 1 in development,
	// 2 in staging (3 with mysql), 3 in production.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Size *int32 `json:"size,omitempty"`
}

// Cache of a shop: one Redis, with a generated password. What it holds is lost
// when its pod is replaced, and for that moment it does not answer: an
// application must do without it.
type Cache struct {
	// Enabled turns the cache on or off.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// Memory that the cache may use before it evicts keys, as a Kubernetes
	// quantity: at least 16Mi. Its pod may use twice as much and 32Mi. Defaults
	// to 64Mi in development, 256Mi in staging, 512Mi in production.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).compareTo(quantity('16Mi')) >= 0",message="cache.memory must be a quantity of at least 16Mi"
	Memory string `json:"memory,omitempty"`

	// EvictionPolicy defines which keys make room for new ones once the memory is
	// used up, by the names of Redis' maxmemory-policy. With noeviction none
	// do, and writes are refused.
	// +optional
	// +kubebuilder:default=allkeys-lru
	EvictionPolicy EvictionPolicy `json:"evictionPolicy,omitempty"`

	// TLS of the connections to the cache.
	// +optional
	TLS *CacheTLS `json:"tls,omitempty"`
}

// CacheTLS defines whether connections to a cache are encrypted.
type CacheTLS struct {
	// Enabled admits only connections with TLS, by a certificate that an
	// authority of the cache's own has signed. False is for clients that support
	// no TLS, and admits only connections without: the password and what is
	// cached can then be read on the pods' network. Defaults to true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}

// EvictionPolicy of a cache: Redis' maxmemory-policy.
//
// +kubebuilder:validation:Enum=noeviction;allkeys-lru;allkeys-lfu;allkeys-random;volatile-lru;volatile-lfu;volatile-random;volatile-ttl
type EvictionPolicy string

// EvictAllKeysLRU makes room by the least recently used keys: the default.
const EvictAllKeysLRU EvictionPolicy = "allkeys-lru"

// EcommercePlatformPhase is the state of a shop in one word.
//
// +kubebuilder:validation:Enum=Pending;Deploying;Running;Degraded;Failed
type EcommercePlatformPhase string

// Endpoints of a shop. There are no secrets in them.
type Endpoints struct {
	// URL of the shop outside the cluster, when there is an ingress.
	// +optional
	URL string `json:"url,omitempty"`

	// Frontend is its URL inside the cluster.
	// +optional
	Frontend string `json:"frontend,omitempty"`

	// Backend is its URL inside the cluster.
	// +optional
	Backend string `json:"backend,omitempty"`

	// Database is host:port of the primary.
	// +optional
	Database string `json:"database,omitempty"`

	// Cache is host:port of Redis.
	// +optional
	Cache string `json:"cache,omitempty"`
}

// EcommercePlatformStatus is the observed state of a shop.
type EcommercePlatformStatus struct {
	appsv1.CommonStatus `json:",inline"`

	// Phase in one word: Pending (nothing is there yet), Deploying (a change
	// is on its way), Running, Degraded (what was healthy is not any more) or
	// Failed.
	// +optional
	Phase EcommercePlatformPhase `json:"phase,omitempty"`

	// Endpoints at which the parts of the shop are reached.
	// +optional
	Endpoints *Endpoints `json:"endpoints,omitempty"`

	// Config that the tiers run, where the claim has one.
	// +optional
	Config *appsv1.ConfigStatus `json:"config,omitempty"`
}

// EcommercePlatform is a whole shop: frontend, backend, database and cache,
// started in the order of their dependencies and wired by Secrets.
//
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ecp,categories={storeplane}
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=`.spec.environment`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoints.frontend`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 31",message="metadata.name may have at most 31 characters, so that the names made from it fit"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and hold only lower-case letters, digits and hyphens, since Services are named after it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.backend.cronJobs) || self.spec.backend.cronJobs.all(c, self.metadata.name.size() + c.name.size() <= 38)",message="metadata.name and a backend.cronJobs name together may have at most 38 characters, so that <claim>-backend-cron-<name> fits a CronJob"
type EcommercePlatform struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the application team asks for.
	Spec EcommercePlatformSpec `json:"spec"`

	// Status is what Storeplane observed.
	// +optional
	Status EcommercePlatformStatus `json:"status,omitempty"`
}
