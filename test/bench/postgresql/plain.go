package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// runScript starts PostgreSQL as its documentation describes.
const runScript = `set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username=app --encoding=UTF8 --locale=C.UTF-8 --auth=scram-sha-256 --pwfile=/etc/password/password $INITDB_ARGS
  echo "include '/etc/plain/plain.conf'" >> "$PGDATA/postgresql.conf"
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
`

// settingsQuery returns the parameters that are configured on a claim's server, as name=value.
const settingsQuery = `SELECT name || '=' || current_setting(name) FROM pg_settings
WHERE source IN ('configuration file', 'command line', 'environment variable') ORDER BY name`

// itsOwn are prefixes of the parameters that are specific to a claim's server and do not affect
// its speed.
var itsOwn = []string{
	"archive_", "cluster_name", "config_file", "data_directory", "external_pid_file", "hba_file", "ident_file", "listen_addresses",
	"port", "primary_", "recovery_", "restore_command", "ssl", "synchronous_standby_names", "unix_socket_directories",
}

// plainConf returns the plain servers' configuration from the result of settingsQuery.
func plainConf(settings string) string {
	var b strings.Builder
	for line := range strings.Lines(settings) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || slices.ContainsFunc(itsOwn, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	}
	return b.String()
}

// preparePlain creates the ConfigMap and the Secret that the plain servers share, and returns the
// password.
func preparePlain(ctx context.Context, c *harness.Cluster, conf string) (password string, err error) {
	password = rand.Text()
	for _, u := range []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"run.sh": runScript, "plain.conf": conf}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"password": password}}},
	} {
		u.SetName("plain")
		u.SetNamespace(namespace)
		if _, err := c.Create(ctx, u); err != nil {
			return "", err
		}
	}
	return password, nil
}

// startPlain starts a plain server from the image and waits until it is ready.
func startPlain(ctx context.Context, c *harness.Cluster, w *harness.World, name, password, initdbArgs string) (server, error) {
	values := map[string]string{"NAMESPACE": namespace, "REGISTRY": c.Registry, "NAME": name, "INITDB_ARGS": initdbArgs}
	for _, file := range []string{"bench/volume.yaml", "bench/service.yaml", "bench/pod.yaml"} {
		u, err := manifests.Read(file, values)
		if err != nil {
			return server{}, err
		}
		if _, err := c.Create(ctx, u); err != nil {
			return server{}, err
		}
	}
	err := w.Await(ctx, 2*time.Minute, "pod "+name+" to be ready", func() (bool, string) {
		p := harness.ClaimOf(w.Get("Pod", name))
		return p.Is("Ready"), p.Status.Phase
	})
	return server{name: name, host: name + "." + namespace + ".svc", user: "app", database: "postgres", password: password, sslmode: "disable"}, err
}
