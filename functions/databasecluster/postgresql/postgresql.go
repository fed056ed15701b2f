// Package postgresql is the engine postgresql of a DatabaseCluster: PostgreSQL under Patroni.
// Failover is done by Patroni in the pods, and needs neither Crossplane nor the function.
package postgresql

import (
	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/compose"
)

// Engine is PostgreSQL.
type Engine struct{}

var _ engine.Engine = Engine{}

const name = "postgresql"

// user is the uid and gid of postgres in package/images/postgresql.
const user = 26

// Ports of PostgreSQL, of Patroni's REST API and of the metrics exporter.
const (
	port        = 5432
	apiPort     = 8008
	metricsPort = 9187
)

// Components of the objects in which Patroni keeps its state.
const (
	state     = "patroni-config"
	failover  = "patroni-failover"
	syncState = "patroni-sync"
)

// monitoringUser is the user of the metrics exporter.
const monitoringUser = "monitoring"

// Keys of the passwords of the servers' own users.
const (
	keySuperuser   = "superuser-password"
	keyReplication = "replication-password"
	keyRewind      = "rewind-password"
	keyRestAPI     = "restapi-password"
)

// cluster is an engine.Cluster with the builders of PostgreSQL.
type cluster struct{ *engine.Cluster }

// Traits returns the properties of PostgreSQL.
func (Engine) Traits() engine.Traits {
	return engine.Traits{
		Name: name, Type: backupv1.PostgreSQL, User: user, ScopeLabel: scopeLabel,
		Port: port, MetricsPort: metricsPort, Supervisor: engine.Port{Name: supervisor, Number: apiPort},
		Passwords: []string{keySuperuser, keyReplication, keyRewind, keyRestAPI},
		// The instance manager calls Patroni with this password.
		PasswordFiles: []string{keyRestAPI},
		Mounts:        mounts(), DataDir: volumeDir, RunDir: runDir,
	}
}

// Configuration returns the configuration of Patroni.
func (Engine) Configuration(c *engine.Cluster) engine.Configuration {
	d := cluster{c}
	return engine.Configuration{
		Files:       map[string]string{fileConfig: d.patroniYAML(d.dynamicConfig())},
		SecretFiles: map[string]string{fileCredentials: d.credentialsYAML()},
		// Patroni applies a change of the dynamic configuration to running servers.
		Restarts: d.patroniYAML(""),
	}
}

// Objects returns the objects in which Patroni keeps its state.
func (Engine) Objects(c *engine.Cluster) []compose.Component {
	d := cluster{c}
	return []compose.Component{
		{Name: state, Part: name, Object: d.patroniState("config")},
		{Name: failover, Part: name, Object: d.patroniState("failover")},
		{Name: syncState, Part: name, Object: d.patroniState("sync")},
	}
}

// Server returns the container of PostgreSQL under Patroni.
func (Engine) Server(c *engine.Cluster) corev1.Container { return cluster{c}.server(c.Image) }

// Exporter returns the container that exports PostgreSQL's metrics.
func (Engine) Exporter(c *engine.Cluster) corev1.Container {
	// Check has accepted only valid versions.
	version, _ := parseVersion(c.Spec.Version)
	return exporter(c.Image, version)
}
