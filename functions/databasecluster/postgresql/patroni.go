package postgresql

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// scopeLabel is that by which Patroni knows its objects and its pods, which it
// marks by engine.RoleLabel:
// https://patroni.readthedocs.io/en/latest/kubernetes.html.
const scopeLabel = "storeplane.example.com/patroni"

// Files of Patroni's configuration: Patroni reads all of a folder whose name ends
// in yaml. The authorities lie beside them, since they may change while servers
// run.
const (
	fileConfig      = "patroni.yaml"
	fileCredentials = "credentials.yaml"
)

const (
	configDir = "/etc/patroni"
	secretDir = "/etc/storeplane/credentials" //nolint:gosec // a folder's name
	volumeDir = "/var/lib/postgresql/data"
	// dataDir is a folder of the volume: the volume's own permissions are the
	// kubelet's (fsGroup), and PostgreSQL insists on its own.
	dataDir = volumeDir + "/pgdata"
)

// patroniState is an object in which Patroni keeps its state, made here so that
// it goes with the claim, and its name is free for the next one. Of its content
// only the dynamic configuration is the claim's. The leader lock is not among
// them, since it changes every few seconds and each change would run this
// function: the instance manager ties that one to the StatefulSet.
func (d cluster) patroniState(kind string) *corev1.ConfigMap {
	meta := d.Named(d.Name(name)+"-"+kind, name, name)
	meta.Labels[scopeLabel] = d.Name(name)
	if kind == "config" {
		meta.Annotations = map[string]string{"config": d.dynamicConfig()}
	}
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta}
}

// slots by which all servers keep WAL until it is archived: whichever is promoted
// then has what the archive does not have. A manager of an older version, which
// reports no stanza, would not let go of it.
func (d cluster) slots() string {
	if !d.BackedUp || d.Archive == "" {
		return ""
	}
	return `"slots":{"` + instance.ArchiveSlot + `":{"type":"physical"}},`
}

// defaultParameters are Storeplane's own. The first five must be the same on all
// servers, and Patroni has defaults of its own for them
// (https://patroni.readthedocs.io/en/latest/patroni_configuration.html).
var defaultParameters = map[string]string{
	"max_connections":           "200",
	"max_locks_per_transaction": "64",
	"max_prepared_transactions": "0",
	"max_worker_processes":      "8",
	"track_commit_timestamp":    "off",

	"wal_level":             "replica",
	"wal_log_hints":         "on",
	"max_wal_senders":       "20",
	"max_replication_slots": "20",

	// A primary that crashed and is back counts for nobody until its standbys
	// have come back too: by default they try again after five seconds.
	"wal_retrieve_retry_interval": "1s",
}

// dynamicConfig is the configuration that all servers share, as JSON. Patroni
// reads it from the cluster, so that a change reaches servers that run: Patroni
// has them reload, and marks those that must restart. Times are in seconds. ttl
// 20 and loop_wait 5 notice a dead primary in at most 20 s; failsafe_mode keeps
// the primary when it is the API server that is away; primary_start_timeout
// gives a primary that crashed alone half a minute to recover before another one
// takes over; check_timeline lets no server lead that never saw the last primary's
// timeline: what that one acknowledged is missing there, and the number of the timeline
// that it would begin may be in the archive already. Synchronous is a quorum: any one standby in step acknowledges a
// write, so the loss of one holds nothing up.
func (d cluster) dynamicConfig() string {
	var b strings.Builder
	b.WriteString(`{"ttl":20,"loop_wait":5,"retry_timeout":5,"primary_start_timeout":30,"failsafe_mode":true,"check_timeline":true,`)
	fmt.Fprintf(&b, `"maximum_lag_on_failover":%d,`, d.lagBound())
	if d.Synchronous {
		fmt.Fprintf(&b, `"synchronous_mode":"quorum","synchronous_mode_strict":%t,`, d.Strict)
	} else {
		b.WriteString(`"synchronous_mode":false,`)
	}
	b.WriteString(d.slots())
	b.WriteString(`"postgresql":{"use_pg_rewind":true,"use_slots":true,"parameters":{`)
	params := build.With(defaultParameters, d.Spec.Parameters)
	if _, set := params["archive_timeout"]; d.BackedUp && !set {
		// At most that much is lost with all servers.
		params["archive_timeout"] = "300"
	}
	for i, k := range slices.Sorted(maps.Keys(params)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(jsonString(k) + ":" + jsonString(params[k]))
	}
	b.WriteString(`}}}`)
	return b.String()
}

// Bounds of how many bytes a standby may be behind that is promoted by itself.
const (
	lagBytes     = 1 << 20
	segmentBytes = 16 << 20
	anyLagBytes  = 1 << 40
)

// lagBound of the standbys. With synchronous replication it is the quorum that
// says who may be promoted: one that has every acknowledged write, however far
// the primary went on alone. Where WAL is archived a server that restarts begins
// a new segment, so those that were not connected are behind by all that is left
// of the old one, and by another one when it is stopped once more.
func (d cluster) lagBound() int64 {
	switch {
	case d.Synchronous:
		return anyLagBytes
	case d.BackedUp:
		return lagBytes + 2*segmentBytes
	}
	return lagBytes
}

// jsonString is a string that YAML reads as JSON does: YAML takes no control
// characters as they are, and no pairs of escapes for one character. It cannot
// fail: every string has one.
func jsonString(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	var b strings.Builder
	for _, r := range string(quoted) {
		if r < 0x7f || r > 0xffff {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// patroniYAML is written by hand: a marshaller costs more than all else that
// this function does. The dynamic configuration, JSON and so YAML too, is in it
// for a server that starts before it can read the cluster's.
func (d cluster) patroniYAML(dynamic string) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	p("scope: %s", d.Name(name))
	p("bootstrap:")
	p("  dcs: %s", dynamic)
	p("  initdb:")
	p("    - data-checksums")
	p("    - encoding: UTF8")
	p("    - locale: C.UTF-8")
	p("    - auth-local: peer")
	p("    - auth-host: scram-sha-256")
	if d.Spec.RestoreFrom != nil {
		p("  method: restore")
		p("  restore:")
		p("    command: %s restore", instance.Program)
		p("    no_params: true")
	}
	p("postgresql:")
	p("  listen: '*:%d'", port)
	p("  data_dir: %s", dataDir)
	p("  pgpass: /tmp/pgpass")
	// A primary that goes on in the moment in which it loses its lock acknowledges
	// nothing that the next one does not have.
	p("  pre_promote: %s fence", instance.Program)
	p("  use_unix_socket: true")
	p("  authentication:")
	p("    superuser:")
	p("      username: postgres")
	// Servers know each other by address, which no certificate names.
	for _, u := range []string{"replication", "rewind"} {
		p("    %s:", u)
		p("      username: %s", map[string]string{"replication": "standby", "rewind": "rewind"}[u])
		p("      sslmode: verify-ca")
		p("      sslrootcert: %s/%s", configDir, engine.FilePeers)
	}
	// Without it a new server waits for minutes until an idle primary writes a
	// checkpoint of its own accord.
	p("  basebackup:")
	p("    - checkpoint: fast")
	p("  parameters:")
	p("    unix_socket_directories: /var/run/postgresql")
	p("    password_encryption: scram-sha-256")
	p("    ssl: 'on'")
	p("    ssl_cert_file: %s/tls.crt", engine.TLSDir)
	p("    ssl_key_file: %s/tls.key", engine.TLSDir)
	if d.BackedUp {
		// pgBackRest makes no backup unless the command has its name.
		p("    archive_mode: 'on'")
		p("    archive_command: '%s pgbackrest-push \"%%p\"'", instance.Program)
	}
	// The manager and the exporter come by the socket, as users who need no
	// password there; nobody else is in the pod. The superuser does not come
	// over the network, and so has nothing to guess.
	p("  pg_ident:")
	p("    - pod postgres postgres")
	p("    - pod postgres %s", monitoringUser)
	p("  pg_hba:")
	p("    - local all postgres,%s peer map=pod", monitoringUser)
	p("    - local all all scram-sha-256")
	p("    - hostssl replication standby all scram-sha-256")
	p("    - host all postgres,%s,standby all reject", monitoringUser)
	p("    - %s all all all scram-sha-256", d.hostKind())
	p("restapi:")
	p("  listen: '*:%d'", apiPort)
	p("kubernetes:")
	p("  use_endpoints: false")
	p("  scope_label: %s", scopeLabel)
	p("  role_label: %s", engine.RoleLabel)
	p("  leader_label_value: %s", engine.RolePrimary)
	p("  follower_label_value: %s", engine.RoleReplica)
	p("  standby_leader_label_value: standby-leader")
	p("  labels:")
	labels := d.Selector(name)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		p("    %s: %s", k, quoted(labels[k]))
	}
	return b.String()
}

// hostKind is how users may come over the network.
func (d cluster) hostKind() string {
	if d.TLSRequired {
		return "hostssl"
	}
	return "host"
}

// credentialsYAML is the part of Patroni's configuration that is secret. It
// guards those of the REST API's calls that change something.
func (d cluster) credentialsYAML() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("postgresql:")
	p("  authentication:")
	p("    superuser:")
	p("      password: %s", quoted(d.Passwords[keySuperuser]))
	p("    replication:")
	p("      password: %s", quoted(d.Passwords[keyReplication]))
	p("    rewind:")
	p("      password: %s", quoted(d.Passwords[keyRewind]))
	p("restapi:")
	p("  authentication:")
	p("    username: patroni")
	p("    password: %s", quoted(d.Passwords[keyRestAPI]))
	return b.String()
}

// quoted as a YAML string in double quotes.
func quoted(s string) string { return strconv.QuoteToASCII(s) }
