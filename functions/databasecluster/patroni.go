package databasecluster

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
)

// Labels by which Patroni knows its objects and marks its pods:
// https://patroni.readthedocs.io/en/latest/kubernetes.html.
const (
	scopeLabel = "storeplane.example.com/patroni"
	roleLabel  = "storeplane.example.com/role"
)

// Values of roleLabel.
const (
	rolePrimary = "primary"
	roleReplica = "replica"
)

// Files of the ConfigMap.
const (
	fileConfig   = "patroni.yaml"
	filePostInit = "post-init.sh"
	fileCallback = "on-role.py"
)

const (
	configDir = "/etc/patroni"
	secretDir = "/etc/storeplane/credentials" //nolint:gosec // a folder's name
	volumeDir = "/var/lib/postgresql/data"
	// dataDir is a folder of the volume: the volume's own permissions are the
	// kubelet's (fsGroup), and PostgreSQL insists on its own.
	dataDir = volumeDir + "/pgdata"
)

// configMap holds what the servers start with.
func (d *cluster) configMap() *corev1.ConfigMap {
	return build.ConfigMap(d.Meta(postgresql, appName), map[string]string{
		fileConfig:   d.patroniYAML(d.dynamicConfig()),
		filePostInit: postInit,
		fileCallback: onRole,
	})
}

// patroniState is an object in which Patroni keeps its state, made here so that
// it goes with the claim, and its name is free for the next one. Of its content
// only the dynamic configuration is the claim's. The leader lock is not among
// them, since it changes every few seconds and each change would run this
// function: the callback ties that one to the StatefulSet.
func (d *cluster) patroniState(kind string) *corev1.ConfigMap {
	meta := d.Named(d.Name(postgresql)+"-"+kind, postgresql, appName)
	meta.Labels[scopeLabel] = d.Name(postgresql)
	if kind == "config" {
		meta.Annotations = map[string]string{"config": d.dynamicConfig()}
	}
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta}
}

func (d *cluster) synchronous() bool {
	if d.spec.Synchronous != nil {
		return *d.spec.Synchronous
	}
	return d.profile.Synchronous && d.spec.Size > 1
}

// dynamicParameters must be the same on all servers, so Patroni takes them only
// from its dynamic configuration, with these defaults
// (https://patroni.readthedocs.io/en/latest/patroni_configuration.html).
var dynamicParameters = []struct{ name, value string }{
	{"max_connections", "200"},
	{"max_locks_per_transaction", "64"},
	{"max_prepared_transactions", "0"},
	{"max_worker_processes", "8"},
	{"track_commit_timestamp", "off"},
}

// dynamicConfig is the configuration that all servers share, as JSON. Patroni
// reads it from the cluster, so that a change reaches servers that run. Times
// are in seconds. ttl 20 and loop_wait 5 notice a dead primary in at most 20 s;
// failsafe_mode keeps the primary when it is the API server that is away.
func (d *cluster) dynamicConfig() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"ttl":20,"loop_wait":5,"retry_timeout":5,"maximum_lag_on_failover":1048576,"failsafe_mode":true,"synchronous_mode":%t,`, d.synchronous())
	b.WriteString(`"postgresql":{"use_pg_rewind":true,"use_slots":true,"parameters":{`)
	for _, p := range dynamicParameters {
		fmt.Fprintf(&b, `"%s":%s,`, p.name, jsonString(d.parameter(p.name, p.value)))
	}
	b.WriteString(`"wal_level":"replica","wal_log_hints":"on","max_wal_senders":20,"max_replication_slots":20}}}`)
	return b.String()
}

// restartParameters are those of the dynamic ones as text: servers take up a
// change of them when they restart.
func (d *cluster) restartParameters() string {
	var b strings.Builder
	for _, p := range dynamicParameters {
		b.WriteString(p.name + "=" + d.parameter(p.name, p.value) + "\n")
	}
	return b.String()
}

// jsonString is a string that YAML reads as JSON does: YAML takes no control
// characters as they are, and no pairs of escapes for one character. It can not
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
func (d *cluster) patroniYAML(dynamic string) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	p("scope: %s", d.Name(postgresql))
	p("bootstrap:")
	p("  dcs: %s", dynamic)
	p("  initdb:")
	p("    - data-checksums")
	p("    - encoding: UTF8")
	p("    - locale: C.UTF-8")
	p("    - auth-local: peer")
	p("    - auth-host: scram-sha-256")
	p("  post_init: /bin/sh %s/%s", configDir, filePostInit)
	p("postgresql:")
	p("  listen: '*:%d'", port)
	p("  data_dir: %s", dataDir)
	p("  pgpass: /tmp/pgpass")
	p("  use_unix_socket: true")
	p("  authentication:")
	p("    superuser:")
	p("      username: postgres")
	p("    replication:")
	p("      username: standby")
	p("    rewind:")
	p("      username: rewind")
	// Without it a new server waits for minutes until an idle primary writes a
	// checkpoint of its own accord.
	p("  basebackup:")
	p("    - checkpoint: fast")
	p("  callbacks:")
	p("    on_start: python3 %s/%s", configDir, fileCallback)
	p("    on_role_change: python3 %s/%s", configDir, fileCallback)
	p("  parameters:")
	p("    unix_socket_directories: /var/run/postgresql")
	p("    password_encryption: scram-sha-256")
	for _, k := range slices.Sorted(maps.Keys(d.spec.Parameters)) {
		if slices.ContainsFunc(dynamicParameters, func(p struct{ name, value string }) bool { return p.name == k }) {
			continue
		}
		p("    %s: %s", quoted(k), quoted(d.spec.Parameters[k]))
	}
	p("  pg_hba:")
	p("    - local all postgres peer")
	p("    - local all all scram-sha-256")
	p("    - host replication standby all scram-sha-256")
	p("    - host all all all scram-sha-256")
	p("restapi:")
	p("  listen: '*:%d'", apiPort)
	p("kubernetes:")
	p("  use_endpoints: false")
	p("  scope_label: %s", scopeLabel)
	p("  role_label: %s", roleLabel)
	p("  leader_label_value: %s", rolePrimary)
	p("  follower_label_value: %s", roleReplica)
	p("  standby_leader_label_value: standby-leader")
	p("  labels:")
	labels := d.Selector(postgresql)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		p("    %s: %s", k, quoted(labels[k]))
	}
	return b.String()
}

// parameter is the claim's value of a PostgreSQL parameter, else the default.
func (d *cluster) parameter(name, byDefault string) string {
	if v, ok := d.spec.Parameters[name]; ok {
		return v
	}
	return byDefault
}

// quoted as a YAML string in double quotes.
func quoted(s string) string { return strconv.QuoteToASCII(s) }

// postInit runs once, on the first primary, with a connection string as its
// argument. Nothing of it is logged: the statements carry a password.
const postInit = `#!/bin/sh
set -eu
exec psql "$1" --no-psqlrc --quiet --set ON_ERROR_STOP=1 <<'SQL'
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_error_statement = 'panic';
\set password ` + "`cat " + secretDir + "/" + keyPassword + "`" + `
CREATE ROLE ` + appUser + ` LOGIN PASSWORD :'password';
CREATE DATABASE ` + appDatabase + ` OWNER ` + appUser + `;
REVOKE ALL ON DATABASE ` + appDatabase + ` FROM PUBLIC;
SQL
`

// onRole is called by Patroni with an action, a role and the scope, after a
// server has started or changed its role. On the primary it does what nobody
// outside the pods should need to watch for. It sets the passwords of the
// credentials Secret, since a volume that was kept from an earlier claim holds
// others. It writes down who the primary is. And it ties the leader lock to the
// StatefulSet, so that it is not left behind.
const onRole = `import json, os, ssl, subprocess, sys, time, urllib.request

CREDENTIALS = "` + secretDir + `"
ROLES = {"` + appUser + `": "` + keyPassword + `", "postgres": "` + keySuperuser + `", "standby": "` + keyReplication + `", "rewind": "` + keyRewind + `"}
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"


def call(method, kind, name, body=None):
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    host = "[%s]" % host if ":" in host else host
    url = "https://%s:%s/api/v1/namespaces/%s/%s/%s" % (
        host, os.environ["KUBERNETES_SERVICE_PORT"], os.environ["POD_NAMESPACE"], kind, name)
    with open(ACCOUNT + "token") as f:
        headers = {"Authorization": "Bearer " + f.read(), "Content-Type": "application/merge-patch+json"}
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, method=method, data=data, headers=headers)
    tls = ssl.create_default_context(cafile=ACCOUNT + "ca.crt")
    with urllib.request.urlopen(request, context=tls, timeout=5) as response:
        return json.load(response)


def record(scope):
    pod = call("GET", "pods", os.environ["POD_NAME"])["metadata"]
    call("PATCH", "configmaps", scope + "-config", {"metadata": {"annotations": {"` + primaryAnnotation + `": pod["name"]}}})
    owners = [o for o in pod.get("ownerReferences", []) if o["kind"] == "StatefulSet"]
    owner = {k: owners[0][k] for k in ("apiVersion", "kind", "name", "uid")}
    call("PATCH", "configmaps", scope + "-leader", {"metadata": {"ownerReferences": [owner]}})


def set_passwords():
    # Nothing of it is logged: the statements carry passwords.
    sql = ["SET log_statement = 'none';", "SET log_min_duration_statement = -1;", "SET log_min_error_statement = 'panic';",
           # A synchronous standby may need these very passwords to connect.
           "SET synchronous_commit = local;"]
    for role, key in ROLES.items():
        sql.append("\\set password ` + "`" + `cat %s/%s` + "`" + `" % (CREDENTIALS, key))
        sql.append("SELECT format('ALTER ROLE %I PASSWORD %L', rolname, :'password') FROM pg_roles WHERE rolname = '" + role + "' \\gexec")
    subprocess.run(
        ["psql", "--host=/var/run/postgresql", "--username=postgres", "--dbname=postgres",
         "--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1"],
        input="\n".join(sql), text=True, check=True, timeout=10, capture_output=True)


def insist(what, do, attempts):
    for attempt in range(attempts):
        try:
            return do()
        except Exception as e:
            print("cannot %s, trying again: %s" % (what, type(e).__name__), file=sys.stderr)
            time.sleep(1)


action, role, scope = sys.argv[1:4]
if role in ("primary", "master"):
    insist("set the passwords", set_passwords, 5)
    insist("record the primary", lambda: record(scope), 60)
`
