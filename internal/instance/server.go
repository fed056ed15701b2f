package instance

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Program is the path of the instance manager in the image.
const Program = "/usr/local/bin/instance"

// Commands of the instance manager, as package main of cmd/instance has them. CommandPush contains
// pgbackrest, because pgBackRest creates no backup unless archive_command contains its name.
const (
	CommandRun     = "run"
	CommandStop    = "stop"
	CommandStart   = "start"
	CommandFence   = "fence"
	CommandPush    = "pgbackrest-push"
	CommandServe   = "serve"
	CommandRestore = "restore"
	CommandRewind  = "rewind"
	CommandMySQL   = "mysql"

	// CommandMySQLArchive archives the binary logs of MySQL's servers.
	CommandMySQLArchive = "mysql-archive"
)

// Environment variables of a server's containers: the name of the pod, its namespace and address,
// and the name of the StatefulSet, which is also Patroni's scope.
const (
	PodVariable       = "POD_NAME"
	NamespaceVariable = "POD_NAMESPACE"
	AddressVariable   = "POD_IP"
	ScopeVariable     = "CLUSTER_SCOPE"
)

// ManagerPort is the port of the instance manager.
const ManagerPort = 8009

// FilePeers is the file of a server's pod with the authorities by which servers verify each other.
// It is among the files of the configuration.
const FilePeers = "peers.crt"

// RoleLabel is a label of a server's pod with its role, by which the Services of the claim select it.
const (
	RoleLabel   = "storeplane.example.com/role"
	RolePrimary = "primary"
	RoleReplica = "replica"
)

// LivenessPath and ReadinessPath are the paths of the API of a server's supervisor that the kubelet
// probes. Those of Patroni have the first name, too: the instance manager answers it until Patroni does.
const (
	LivenessPath  = "/liveness"
	ReadinessPath = "/readiness"
)

// Paths of the instance manager that the kubelet probes.
const (
	StartedPath = "/started"
	HealthyPath = "/healthz"
)

// Directories of a server's pod, besides those in package backup and package control: with the
// certificate of the server, and with the passwords that the instance manager needs.
const (
	TLSDir         = "/etc/storeplane/tls"
	CredentialsDir = "/etc/storeplane/credentials" //nolint:gosec // the name of a directory
)

// Credentials is the component of the Secret with the passwords.
const Credentials = "credentials"

// CredentialsName returns the name of the Secret credentials of a DatabaseCluster.
func CredentialsName(claim string) string { return claim + "-" + Credentials }

// PasswordKey returns the key of a user's password in the Secret credentials.
func PasswordKey(user string) string { return "user-" + user }

// StatusName returns the name of the ConfigMap in which the instance managers report, given that of
// the StatefulSet.
func StatusName(set string) string { return set + "-status" }

// ArchiveName returns the name of the ConfigMap in which the pod that archives the log of a StatefulSet's servers reports.
func ArchiveName(set string) string { return set + "-archive" }

// DataVolume is the name of the volume of a server, and of its volume claim template.
const DataVolume = "data"

// VolumeClaim returns the name of the volume claim of a pod.
func VolumeClaim(pod string) string { return DataVolume + "-" + pod }

// PodOfClaim returns the pod of a volume claim, or the claim's name if it belongs to none.
func PodOfClaim(claim string) string { return strings.TrimPrefix(claim, DataVolume+"-") }

// Ordinal returns the ordinal of a StatefulSet's pod, or math.MaxInt32 if its name has none.
func Ordinal(pod string) int32 {
	n, err := strconv.ParseInt(pod[strings.LastIndex(pod, "-")+1:], 10, 32)
	if err != nil {
		return math.MaxInt32
	}
	return int32(n)
}

// Pod returns the name of a StatefulSet's pod by its ordinal.
func Pod(set string, ordinal int32) string { return fmt.Sprintf("%s-%d", set, ordinal) }
