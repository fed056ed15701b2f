// Package engine says what a database engine is to a DatabaseCluster. Whatever
// runs in a server's container, what it is configured by and what its clients
// need to know is an engine's; objects, volumes, certificates, passwords, the
// order of changes and what the claim says of itself are every engine's, and are
// in package databasecluster.
//
// An engine is pure: it reads a resolved cluster and returns values. It asks for
// nothing, draws nothing and knows neither what is observed nor the time.
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
	// Traits of the engine, the same for all claims.
	Traits() Traits

	// Check refuses what no server of this engine can be, whatever there is.
	Check(spec *appsv1.DatabaseClusterSpec) error

	// CheckChange refuses a version that does not fit the data of servers that
	// there are.
	CheckChange(want appsv1.Version, have Running) error

	// Release of a version that Check has let through.
	Release(version appsv1.Version) Release

	// Configuration of the servers.
	Configuration(c *Cluster) Configuration

	// Objects are what the engine itself keeps in the cluster beside its servers,
	// as components.
	Objects(c *Cluster) []compose.Component

	// Server is the container of the server, without its resources.
	Server(c *Cluster) corev1.Container

	// Exporter is the container that exports the server's metrics.
	Exporter(c *Cluster) corev1.Container

	// Connection is what an application needs to connect as a user, by the keys
	// of its Secret.
	Connection(c *Cluster, to Address) map[string]string

	// WithPassword is what of a Connection changes with the password.
	WithPassword(values map[string]string, user, was, password string) map[string]string
}

// Traits of an engine.
type Traits struct {
	// Name of the engine: of the component that its servers are, of their
	// container and their port, of their image, and app.kubernetes.io/name.
	Name string

	// Type of the engine for a Backup.
	Type backupv1.Engine

	// User of the image, by number, which is a group too.
	User int64

	// ScopeLabel is that by which the engine's supervisor knows its pods.
	ScopeLabel string

	// Port by which clients and servers reach a server, MetricsPort that of the
	// exporter, and Supervisor that of what watches over the server, which has
	// metrics too.
	Port, MetricsPort int32
	Supervisor        Port

	// Passwords that the servers have for themselves, by their keys in the
	// Secret of the servers, and those of them that are files of a server's pod.
	Passwords, PasswordFiles []string

	// Mounts of whatever works on a server's files, of the volumes data, config,
	// credentials, tls, tmp and run. DataDir and RunDir are where those of that
	// name are.
	Mounts          []corev1.VolumeMount
	DataDir, RunDir string
}

// Port by its name in the pod.
type Port struct {
	Name   string
	Number int32
}

// Release of an engine.
type Release struct {
	// Tag of the image that runs a version.
	Tag string
	// Series of versions that read each other's data.
	Series string
}

// RoleLabel on a server's pod says what it is: the Services of the claim follow it.
const (
	RoleLabel   = "storeplane.example.com/role"
	RolePrimary = "primary"
	RoleReplica = "replica"
)

// Folders and files of a server's pod that every engine has.
const (
	// TLSDir has the server's certificate, as tls.crt, tls.key and ca.crt.
	TLSDir = "/etc/storeplane/tls"
	// FilePeers are the authorities by which servers know each other, among the
	// files of the configuration.
	FilePeers = "peers.crt"
)

// TLSVolume of a pod holds its server's certificate.
const TLSVolume = "tls"

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

// Owner of a database.
func Owner(db appsv1.Database) string {
	if db.Owner == "" {
		return AppUser
	}
	return string(db.Owner)
}

// Running is what is known of the servers' versions.
type Running struct {
	// Ran tells that a server has run, so that there may be data.
	Ran bool
	// Rolled is the tag of the image that they were last rolled to.
	Rolled string
	// Reported by each server that runs.
	Reported []string
}

// Configuration of an engine's servers.
type Configuration struct {
	// Files by name, which all servers read, and those of them that are secret.
	Files, SecretFiles map[string]string
	// Restarts is what of them takes another pod to change.
	Restarts string
}

// Cluster is what an engine knows of a claim. Nothing of it changes.
type Cluster struct {
	build.Scope

	Spec *appsv1.DatabaseClusterSpec

	// Image of the servers.
	Image string

	// Synchronous replication, and whether writes stop while no standby
	// acknowledges them.
	Synchronous, Strict bool

	// TLSRequired of clients that come over the network.
	TLSRequired bool

	// Authority that has signed the servers' certificate, and whether it is the
	// cluster's own: then the certificate bears the names of Address.
	Authority    string
	OwnAuthority bool

	// BackedUp tells that what is written is archived, Archive the place in the
	// repository that the servers report, or "".
	BackedUp bool
	Archive  string

	// Passwords of the servers' own users, by Engine.Passwords, and of the
	// claim's users, by name.
	Passwords, Users map[string]string
}

// AuthorityDir is where applications that verify their connection to a DatabaseCluster
// mount the authority of its servers, as ca.crt.
func AuthorityDir(cluster string) string { return "/etc/storeplane/" + cluster }

// Address of a database, for one user.
type Address struct {
	User, Database string
	// Host follows the primary, Hosts are all at which it may be.
	Host  string
	Hosts []string
}

// Identity tells a container who it is.
func Identity(scope string) []corev1.EnvVar {
	return []corev1.EnvVar{
		build.FromField("POD_NAME", "metadata.name"),
		build.FromField("POD_NAMESPACE", "metadata.namespace"),
		build.FromField("POD_IP", "status.podIP"),
		{Name: instance.ScopeVariable, Value: scope},
	}
}
