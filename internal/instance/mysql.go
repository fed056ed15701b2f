package instance

// Names of the servers of MySQL, which a supervisor of Storeplane's own runs.

// MySQLUser is the ID of the user and the group that the image runs as.
const MySQLUser = 27

// Ports of MySQL and of its supervisor.
const (
	MySQLPort           = 3306
	MySQLSupervisorPort = 8008
)

// MySQLScopeLabel is the label by which the supervisors find the pods of their group. Its value is
// the name of the StatefulSet.
const MySQLScopeLabel = "storeplane.example.com/group"

// Directories and files of a server's pod.
const (
	// MySQLVolumeDir is where the volume is mounted, MySQLRunDir contains the socket, and
	// MySQLConfigDir the file with MySQL's options.
	MySQLVolumeDir  = "/var/lib/mysql"
	MySQLRunDir     = "/var/run/mysqld"
	MySQLConfigDir  = "/etc/mysql"
	MySQLConfigFile = "my.cnf"

	// MySQLVariablesFile, beside MySQLConfigFile and under this key in the ConfigMap of it, has the global
	// variables that servers set before they join their group and whenever they change: an object of JSON,
	// with values as in a file of options.
	MySQLVariablesFile = "variables.json"

	// MySQLSocket is the server's socket, in MySQLRunDir.
	MySQLSocket = "mysqld.sock"
)

// MySQLReplicationUser is the user as which servers connect to each other: by certificate, without a
// password.
const MySQLReplicationUser = "storeplane_replication"

// MySQLBackupUser is the user that dumps databases, over the network: it reads the claim's databases, and
// nothing else.
const MySQLBackupUser = "storeplane_backup"

// MySQLSystemAttribute is the attribute of MySQLBackupUser with the identifier of the data: it distinguishes
// backups from those of an earlier cluster of the same name.
const MySQLSystemAttribute = "storeplaneSystem"

// KeyMonitoring and KeyBackup are the keys of the passwords of the exporter's user and of MySQLBackupUser in
// the Secret credentials.
const (
	KeyMonitoring = "monitoring-password"
	KeyBackup     = "backup-password"
)

// GroupName returns the name of the ConfigMap in which the servers of a group record what they agree
// on, given that of the StatefulSet. GroupAnnotation is its annotation with the record, as JSON.
func GroupName(set string) string { return set + "-group" }

// GroupAnnotation is the annotation of the ConfigMap GroupName with the record, as JSON.
const GroupAnnotation = "storeplane.example.com/group-record"

// MySQLSuperuser is the user of the socket. It has no password: the socket is in a folder of the pod,
// and the user cannot connect over the network.
const MySQLSuperuser = "root"

// MySQLDatabases returns the databases that are MySQL's own.
func MySQLDatabases() []string {
	return []string{"mysql", "information_schema", "performance_schema", "sys"}
}
