// Package engine defines what a database engine is to a DatabaseCluster. What runs in a server's
// container, its configuration and what its clients need to connect is up to the engine. Objects,
// volumes, certificates, passwords, the order of changes and the status of the claim are the same
// for every engine, and are in package databasecluster.
//
// An engine is pure: it reads a resolved cluster and returns values. It requests nothing, generates
// no random values, and reads neither what is observed nor the time.
package engine

import (
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
)

// Engine is one kind of database server.
type Engine interface {
	// Traits returns the properties of the engine, the same for all claims.
	Traits() Traits

	// Check returns an error for a spec that no server of this engine can have, whatever exists.
	Check(spec *appsv1.DatabaseClusterSpec) error

	// CheckChange returns an error for a version that does not fit the data of existing servers.
	CheckChange(want appsv1.Version, have Running) error

	// Release returns the release of a version that Check has accepted.
	Release(version appsv1.Version) Release

	// Configuration returns the configuration of the servers.
	Configuration(c *Cluster) Configuration

	// Objects returns the objects that the engine itself keeps beside its servers, as components.
	Objects(c *Cluster) []compose.Component

	// Server returns the container of the server, without its resources.
	Server(c *Cluster) corev1.Container

	// Exporter returns the container that exports the server's metrics.
	Exporter(c *Cluster) corev1.Container

	// Connection returns what an application needs to connect as a user, by the keys of its Secret.
	Connection(c *Cluster, to Address) map[string]string
}

// Traits are the properties of an engine.
type Traits struct {
	// Name of the engine: also that of its servers' component, container, port and image, and the
	// value of app.kubernetes.io/name.
	Name string

	// Type of the engine for a Backup.
	Type backupv1.Engine

	// User is the uid of the image's user, and the gid of its group.
	User int64

	// ScopeLabel is the label by which the engine's supervisor finds its pods.
	ScopeLabel string

	// Port is the port at which clients and servers reach a server, and MetricsPort
	// that of the exporter. Supervisor is the port of the program that supervises the
	// server, which has metrics too. Manager is the port of the instance manager beside
	// it, or zero if the supervisor is the instance manager.
	Port, MetricsPort   int32
	Supervisor, Manager Port

	// States returns the names of the ConfigMaps in which the servers keep their state, given
	// that of the StatefulSet. LockCreated is true if they create one of them.
	States      func(set string) []string
	LockCreated bool

	// Synchronous is true if several servers always replicate synchronously.
	Synchronous bool

	// Memory is the least limit of memory, in bytes, of a server whose claim sets no resources, or 0
	// if each environment's default is enough.
	Memory int64

	// Archives is true if servers are backed up physically, and archive their log. Otherwise the
	// provider dumps their databases: Dumper is the user that it connects as, and DumperPassword
	// the key of that user's password in the Secret of the servers.
	Archives               bool
	Dumper, DumperPassword string

	// LogArchiver is the command of the instance manager that archives the log of an engine whose
	// servers do not archive it themselves, or "" if the engine has no backups but dumps.
	LogArchiver string

	// Passwords are the keys of the passwords of the servers' own users in the Secret of the
	// servers. PasswordFiles are those of them that are files of a server's pod.
	Passwords, PasswordFiles []string

	// Mounts are the mounts of a container that works on a server's files, of the volumes data,
	// config, credentials, tls, tmp and run. DataDir and RunDir are where data and run are mounted.
	Mounts          []corev1.VolumeMount
	DataDir, RunDir string
}

// Port is a port of the pod with its name.
type Port struct {
	Name   string
	Number int32
}

// Release is a release of an engine.
type Release struct {
	// Tag of the image that runs a version.
	Tag string
	// Series names the versions that read each other's data.
	Series string
}

// Volumes of a server's pod: with its configuration, its credentials and its certificate, and
// folders for what it writes while it runs and for its shared memory.
const (
	ConfigVolume      = "config"
	CredentialsVolume = "credentials"
	TLSVolume         = "tls"
	RunVolume         = "run"
	MemoryVolume      = "shm"
)

// Names of the containers beside the server's.
const (
	ManagerContainer  = "instance"
	ExporterContainer = "metrics"
)

// The user and database that every cluster has.
const (
	AppUser     = "app"
	AppDatabase = "app"
)

// Owner returns the owner of a database.
func Owner(db appsv1.Database) string {
	if db.Owner == "" {
		return AppUser
	}
	return string(db.Owner)
}

// Running is what is known of the servers' versions.
type Running struct {
	// Ran is true if a server has run, so that there may be data.
	Ran bool
	// Rolled is the tag of the image that they were last rolled to.
	Rolled string
	// Reported are the versions that running servers report.
	Reported []string
}

// Configuration is the configuration of an engine's servers.
type Configuration struct {
	// Files are the files that all servers read, by name. SecretFiles are those that are secret.
	Files, SecretFiles map[string]string
	// Restarts is the part of the configuration whose change takes another pod.
	Restarts string
}

// Cluster is what an engine reads of a claim. It does not change.
type Cluster struct {
	build.Scope

	Spec *appsv1.DatabaseClusterSpec

	// Image of the servers.
	Image string

	// Memory is the most memory in bytes that a server may use, or 0 without a limit.
	Memory int64

	// Synchronous is true for synchronous replication, and Strict if writes are blocked while no
	// standby acknowledges them.
	Synchronous, Strict bool

	// TLSRequired is true if clients that connect over the network must use TLS.
	TLSRequired bool

	// Authority is the authority that has signed the servers' certificate, in PEM. OwnAuthority is
	// true if it is the cluster's own: then the certificate contains the names of Address.
	Authority    string
	OwnAuthority bool

	// Archiving is true if WAL is archived. Archive is the place in the repository that
	// the servers report, or "".
	Archiving bool
	Archive   string

	// Passwords are those of the servers' own users, by the keys in Traits.Passwords. Users are the
	// passwords of the claim's users, by name.
	Passwords, Users map[string]string
}

// AuthorityDir returns the folder where applications that verify their connection to a
// DatabaseCluster mount the authority of its servers, as ca.crt.
func AuthorityDir(cluster string) string { return "/etc/storeplane/" + cluster }

// Address is the address of a database, for one user. Without a Database it is that of the server.
type Address struct {
	User, Database string
	// Host follows the primary. Hosts are all at which the primary may be.
	Host  string
	Hosts []string
}

// Identity returns the environment variables with a container's pod and the
// name of its StatefulSet.
func Identity(scope string) []corev1.EnvVar {
	return []corev1.EnvVar{
		build.FromField(instance.PodVariable, "metadata.name"),
		build.FromField(instance.NamespaceVariable, "metadata.namespace"),
		build.FromField(instance.AddressVariable, "status.podIP"),
		{Name: instance.ScopeVariable, Value: scope},
	}
}
