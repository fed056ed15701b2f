package instance

// Names of the servers of PostgreSQL, which Patroni supervises.

// PostgreSQLUser is the ID of the user and the group that the image runs as: that of postgres in
// package/images/postgresql, and in the image backup, which is built from it.
const PostgreSQLUser = 26

// Ports of PostgreSQL and of Patroni's REST API.
const (
	PostgreSQLPort = 5432
	PatroniPort    = 8008
)

// Directories and files of a server's pod.
const (
	// VolumeDir is where the volume is mounted, and DataFolder is PostgreSQL's data directory
	// on it: the kubelet sets the permissions of the volume itself (fsGroup), and PostgreSQL
	// requires its own.
	VolumeDir  = "/var/lib/postgresql/data"
	DataFolder = "pgdata"
	DataDir    = VolumeDir + "/" + DataFolder

	// SocketDir contains PostgreSQL's socket.
	SocketDir = "/var/run/postgresql"

	// PatroniDir contains the configuration of Patroni, which reads all files there whose names
	// end in yaml.
	PatroniDir  = "/etc/patroni"
	PatroniFile = "patroni.yaml"
)

// Keys of the passwords of the servers' own users in the Secret credentials.
const (
	KeySuperuser   = "superuser-password"
	KeyReplication = "replication-password"
	KeyRewind      = "rewind-password"
	KeyRESTAPI     = "restapi-password"
)

// The servers' own users, besides the superuser: those of replication, of pg_rewind and of the
// metrics exporter.
const (
	UserReplication = "standby"
	UserRewind      = "rewind"
	UserMonitoring  = "monitoring"
)

// ScopeLabel is the label by which Patroni finds its objects and its pods. Its value is the name of
// the StatefulSet.
const ScopeLabel = "storeplane.example.com/patroni"

// ConfigName returns the name of the ConfigMap with Patroni's dynamic configuration, given that of
// the StatefulSet.
func ConfigName(set string) string { return set + "-config" }

// FailoverName returns the name of the ConfigMap with the requests to Patroni to switch over.
func FailoverName(set string) string { return set + "-failover" }

// LeaderName returns the name of the ConfigMap that is Patroni's leader lock.
func LeaderName(set string) string { return set + "-leader" }

// SyncName returns the name of the ConfigMap in which Patroni lists synchronous standbys.
func SyncName(set string) string { return set + "-sync" }
