// Package mysql is the engine mysql of a DatabaseCluster: MySQL with Group Replication in
// single-primary mode. The servers elect their primary themselves, and need neither Crossplane nor the
// function for that.
package mysql

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
)

// Engine is MySQL.
type Engine struct{}

var _ engine.Engine = Engine{}

const name = string(backupv1.MySQL)

// metricsPort is the port of the metrics exporter.
const metricsPort = 9104

// record is the component of the ConfigMap in which the servers record their group.
const record = "group"

// cluster is an engine.Cluster with the builders of MySQL.
type cluster struct{ *engine.Cluster }

// Traits returns the properties of MySQL. Of the servers' own users only those of the exporter and of
// backups have passwords: one connects over the socket, and one by certificate.
func (Engine) Traits() engine.Traits {
	return engine.Traits{
		Name: name, Type: backupv1.MySQL, User: instance.MySQLUser, ScopeLabel: instance.MySQLScopeLabel,
		Port: instance.MySQLPort, MetricsPort: metricsPort, Supervisor: engine.Port{Name: supervisor, Number: instance.MySQLSupervisorPort},
		Passwords: []string{instance.KeyMonitoring, instance.KeyBackup}, Dumper: instance.MySQLBackupUser, DumperPassword: instance.KeyBackup,
		LogArchiver: instance.CommandMySQLArchive,
		Mounts:      mounts(), DataDir: instance.MySQLVolumeDir, RunDir: instance.MySQLRunDir,
		States:      func(set string) []string { return []string{instance.GroupName(set)} },
		Synchronous: true, Memory: defaultMemory,
	}
}

// Configuration returns the options of the servers, of which a change takes another pod, and the variables
// that they set while they run.
func (Engine) Configuration(c *engine.Cluster) engine.Configuration {
	d := cluster{c}
	options := d.options()
	return engine.Configuration{
		Files:       map[string]string{instance.MySQLConfigFile: options, instance.MySQLVariablesFile: encode(d.variables())},
		SecretFiles: map[string]string{fileExporter: d.exporterOptions()},
		Restarts:    options,
	}
}

// encode returns variables as an object of JSON, in a line each.
func encode(variables map[string]string) string {
	out, _ := json.MarshalIndent(variables, "", "  ") //nolint:errchkjson // texts can be encoded
	return string(out) + "\n"
}

// Objects returns the ConfigMap in which the servers record their group.
func (Engine) Objects(c *engine.Cluster) []compose.Component {
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: c.Named(instance.GroupName(c.Name(name)), name, name),
	}
	return []compose.Component{{Name: record, Part: name, Object: object}}
}

// Server returns the container of MySQL under its supervisor.
func (Engine) Server(c *engine.Cluster) corev1.Container { return cluster{c}.server() }

// Exporter returns the container that exports MySQL's metrics.
func (Engine) Exporter(c *engine.Cluster) corev1.Container { return exporter(c.Image) }
