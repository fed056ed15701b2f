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

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// fileCredentials is the secret part of Patroni's configuration, beside instance.PatroniFile. The
// authorities are in the same folder, since they may change while servers run.
const fileCredentials = "credentials.yaml"

// patroniState returns an object in which Patroni keeps its state. It is composed so that it is
// deleted with the claim, and its name is free for the next one. The claim owns only the dynamic
// configuration in it. The leader lock is not composed, since it changes every few seconds and each
// change would run this function: the instance manager makes the StatefulSet its owner.
func (d cluster) patroniState(nameOf func(set string) string) *corev1.ConfigMap {
	meta := d.Named(nameOf(d.Name(name)), name, name)
	meta.Labels[instance.ScopeLabel] = d.Name(name)
	if meta.Name == instance.ConfigName(d.Name(name)) {
		meta.Annotations = map[string]string{"config": d.dynamicConfig()}
	}
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta}
}

// slots returns the replication slot by which all servers keep WAL until it is archived: a server
// that is promoted then has what the archive lacks. There is none while no stanza is reported: an
// instance manager of an older version reports none, and would never release the WAL.
func (d cluster) slots() string {
	if !d.Archiving || d.Archive == "" {
		return ""
	}
	return `"slots":{"` + instance.ArchiveSlot + `":{"type":"physical"}},`
}

// defaultParameters are Storeplane's own defaults. The first five must be the same on all servers,
// and Patroni has defaults of its own for them
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

	// A primary that has crashed and restarted is of no use until its standbys reconnect: by
	// default they retry after five seconds.
	"wal_retrieve_retry_interval": "1s",
}

// dynamicConfig returns the configuration that all servers share, as JSON. Patroni reads it from
// the cluster, so that a change reaches running servers: Patroni reloads them, and marks those that
// must restart. Times are in seconds. With ttl 20 and loop_wait 5 a failed primary is detected in
// at most 20 s. failsafe_mode keeps the primary while only the API server is unreachable.
// primary_start_timeout gives a primary that crashed alone half a minute to recover before another
// server takes over. check_timeline prevents a server from leading that has not replayed the last
// primary's timeline: it lacks what that primary acknowledged, and the number of the timeline that
// it would begin may be in the archive already. Synchronous replication uses a quorum: any one
// synchronous standby acknowledges a write, so the loss of one blocks nothing.
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
	if _, set := params["archive_timeout"]; d.Archiving && !set {
		// If all servers are lost, at most the writes of that many seconds are lost with them.
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

// Sizes in bytes, of which lagBound is computed.
const (
	lagBytes     = 1 << 20
	segmentBytes = 16 << 20
	anyLagBytes  = 1 << 40
)

// lagBound returns how many bytes a standby may be behind and still be promoted automatically. With
// synchronous replication the quorum decides that: a standby that has every acknowledged write,
// however far the primary continued alone. Where WAL is archived a server that restarts begins a
// new segment, so standbys that were not connected are behind by the rest of the old one, and by
// another one if the server is stopped once more.
func (d cluster) lagBound() int64 {
	switch {
	case d.Synchronous:
		return anyLagBytes
	case d.Archiving:
		return lagBytes + 2*segmentBytes
	}
	return lagBytes
}

// jsonString returns a JSON string that YAML reads in the same way: YAML allows neither raw control
// characters nor surrogate pairs of escapes. It cannot fail: every string can be written as JSON.
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

// patroniYAML returns Patroni's configuration. It is written by hand, since a marshaller costs more
// than all else that this function does. It contains the dynamic configuration, which as JSON is
// YAML too, for a server that starts before it can read the cluster's.
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
		p("    command: %s %s", instance.Program, instance.CommandRestore)
		p("    no_params: true")
	}
	p("postgresql:")
	p("  listen: '*:%d'", instance.PostgreSQLPort)
	p("  data_dir: %s", instance.DataDir)
	p("  pgpass: /tmp/pgpass")
	// After the fence, a primary that continues while it loses its lock acknowledges nothing that
	// the next primary does not have.
	p("  pre_promote: %s %s", instance.Program, instance.CommandFence)
	p("  use_unix_socket: true")
	p("  authentication:")
	p("    superuser:")
	p("      username: postgres")
	// Servers connect to each other by address, which no certificate contains.
	for _, u := range []string{"replication", "rewind"} {
		p("    %s:", u)
		p("      username: %s", map[string]string{"replication": instance.UserReplication, "rewind": instance.UserRewind}[u])
		p("      sslmode: verify-ca")
		p("      sslrootcert: %s/%s", instance.PatroniDir, instance.FilePeers)
	}
	// Without it a new server waits for minutes until an idle primary
	// writes a checkpoint by itself.
	p("  basebackup:")
	p("    - checkpoint: fast")
	p("  parameters:")
	p("    unix_socket_directories: %s", instance.SocketDir)
	p("    password_encryption: scram-sha-256")
	p("    ssl: 'on'")
	p("    ssl_cert_file: %s/tls.crt", instance.TLSDir)
	p("    ssl_key_file: %s/tls.key", instance.TLSDir)
	if d.Archiving {
		// pgBackRest makes no backup unless the command contains its name.
		p("    archive_mode: 'on'")
		p("    archive_command: '%s %s \"%%p\"'", instance.Program, instance.CommandPush)
	}
	// The manager and the exporter connect by the socket, as users that need no password there; no
	// other client is in the pod. The superuser cannot connect over the network, so its password
	// cannot be guessed there.
	p("  pg_ident:")
	p("    - pod postgres postgres")
	p("    - pod postgres %s", instance.UserMonitoring)
	p("    - pod %s %s", exporterUser, instance.UserMonitoring)
	p("  pg_hba:")
	p("    - local all postgres,%s peer map=pod", instance.UserMonitoring)
	p("    - local all all scram-sha-256")
	p("    - hostssl replication standby all scram-sha-256")
	p("    - host all postgres,%s,standby all reject", instance.UserMonitoring)
	p("    - %s all all all scram-sha-256", d.hostKind())
	p("restapi:")
	p("  listen: '*:%d'", instance.PatroniPort)
	p("kubernetes:")
	p("  use_endpoints: false")
	p("  scope_label: %s", instance.ScopeLabel)
	p("  role_label: %s", instance.RoleLabel)
	p("  leader_label_value: %s", instance.RolePrimary)
	p("  follower_label_value: %s", instance.RoleReplica)
	p("  standby_leader_label_value: standby-leader")
	p("  labels:")
	labels := d.Selector(name)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		p("    %s: %s", k, quoted(labels[k]))
	}
	return b.String()
}

// hostKind returns the type of the entry in pg_hba by which users may connect over the network.
func (d cluster) hostKind() string {
	if d.TLSRequired {
		return "hostssl"
	}
	return "host"
}

// credentialsYAML returns the part of Patroni's configuration that is secret. The credentials of
// the REST API protect those of its calls that change something.
func (d cluster) credentialsYAML() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("postgresql:")
	p("  authentication:")
	p("    superuser:")
	p("      password: %s", quoted(d.Passwords[instance.KeySuperuser]))
	p("    replication:")
	p("      password: %s", quoted(d.Passwords[instance.KeyReplication]))
	p("    rewind:")
	p("      password: %s", quoted(d.Passwords[instance.KeyRewind]))
	p("restapi:")
	p("  authentication:")
	p("    username: patroni")
	p("    password: %s", quoted(d.Passwords[instance.KeyRESTAPI]))
	return b.String()
}

// quoted returns a YAML string in double quotes.
func quoted(s string) string { return strconv.QuoteToASCII(s) }
