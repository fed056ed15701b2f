// Package postgresql is the engine postgresql of a DatabaseCluster: PostgreSQL under Patroni.
// Failover is done by Patroni in the pods, and needs neither Crossplane nor the function.
package postgresql

import (
	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
)

// Engine is PostgreSQL.
type Engine struct{}

var _ engine.Engine = Engine{}

const name = string(backupv1.PostgreSQL)

// metricsPort is the port of the metrics exporter.
const metricsPort = 9187

// Components of the objects in which Patroni keeps its state.
const (
	state     = "patroni-config"
	failover  = "patroni-failover"
	syncState = "patroni-sync"
)

// cluster is an engine.Cluster with the builders of PostgreSQL.
type cluster struct{ *engine.Cluster }

// Traits returns the properties of PostgreSQL.
func (Engine) Traits() engine.Traits {
	return engine.Traits{
		Name: name, Type: backupv1.PostgreSQL, User: instance.PostgreSQLUser, ScopeLabel: instance.ScopeLabel,
		Port: instance.PostgreSQLPort, MetricsPort: metricsPort, Supervisor: engine.Port{Name: supervisor, Number: instance.PatroniPort}, Manager: engine.Port{Name: engine.ManagerContainer, Number: instance.ManagerPort},
		Passwords: []string{instance.KeySuperuser, instance.KeyReplication, instance.KeyRewind, instance.KeyRESTAPI},
		// The instance manager calls Patroni with this password.
		PasswordFiles: []string{instance.KeyRESTAPI},
		Mounts:        mounts(), DataDir: instance.VolumeDir, RunDir: instance.SocketDir,
		States: func(set string) []string {
			return []string{instance.ConfigName(set), instance.FailoverName(set), instance.LeaderName(set), instance.SyncName(set)}
		},
		LockCreated: true, Archives: true,
	}
}

// Configuration returns the configuration of Patroni.
func (Engine) Configuration(c *engine.Cluster) engine.Configuration {
	d := cluster{c}
	return engine.Configuration{
		Files:       map[string]string{instance.PatroniFile: d.patroniYAML(d.dynamicConfig())},
		SecretFiles: map[string]string{fileCredentials: d.credentialsYAML()},
		// Patroni applies a change of the dynamic configuration to running servers.
		Restarts: d.patroniYAML(""),
	}
}

// Objects returns the objects in which Patroni keeps its state.
func (Engine) Objects(c *engine.Cluster) []compose.Component {
	d := cluster{c}
	return []compose.Component{
		{Name: state, Part: name, Object: d.patroniState(instance.ConfigName)},
		{Name: failover, Part: name, Object: d.patroniState(instance.FailoverName)},
		{Name: syncState, Part: name, Object: d.patroniState(instance.SyncName)},
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
