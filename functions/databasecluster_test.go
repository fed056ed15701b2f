package functions_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func databaseCluster(spec string) string {
	return "apiVersion: apps.example.com/v1\nkind: DatabaseCluster\nmetadata: {name: orders, namespace: team}\nspec: " + spec
}

const (
	oneServer  = "{size: 1, version: '17'}"
	production = "{size: 3, version: '17.2', environment: production, storageSize: 20Gi}"
)

func TestDatabaseClusterComponents(t *testing.T) {
	one := []string{
		"account", "config", "connection", "credentials", "headless", "networkpolicy", "patroni-config", "patroni-failover", "patroni-sync",
		"postgresql", "primary", "role", "rolebinding",
	}
	three := append(slices.Clone(one), "disruptionbudget", "replica")
	slices.Sort(three)
	cases := map[string]struct {
		reason string
		spec   string
		want   []string
	}{
		"One":        {reason: "One server has no replica to read from, and no budget to keep.", spec: oneServer, want: one},
		"Production": {reason: "Three have both.", spec: production, want: three},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, databaseCluster(tc.spec))
			c.settle()
			if diff := cmp.Diff(tc.want, c.names()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDatabaseClusterReady: servers that are up are not a database yet; a
// primary must have been elected.
func TestDatabaseClusterReady(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.reconcile()
	c.heal("postgresql")
	c.reconcile()
	if c.phase() != "Creating" || !strings.Contains(c.message(), "No primary has been elected yet") {
		t.Errorf("want Creating until a primary is elected, got %s, %q", c.phase(), c.message())
	}
	c.heal()
	c.reconcile()
	status := get(c.claim, "status").GetStructValue()
	delete(status.Fields, "conditions")
	delete(status.Fields, "components")
	want := map[string]any{
		"phase": "Running", "readyGeneration": 1.0, "endpoint": "orders-primary.team.svc:5432", "readOnlyEndpoint": "orders-replica.team.svc:5432",
		"connectionSecret": "orders-connection", "primary": "orders-postgresql-config-0", "version": "17.2", "readyReplicas": 3.0,
	}
	if diff := cmp.Diff(want, status.AsMap()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestDatabaseClusterPhases(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	step := func(what, want string) {
		t.Helper()
		c.reconcile()
		if c.phase() != want {
			t.Errorf("%s: want %s, got %s (%s)", what, want, c.phase(), c.message())
		}
	}
	step("Nothing exists", "Creating")
	step("The servers start", "Creating")
	c.heal()
	step("All are up", "Running")

	const three = `{observedGeneration: %d, replicas: 3, readyReplicas: %d, currentReplicas: 3, updatedReplicas: %d, currentRevision: a, updateRevision: %s}`
	c.status("postgresql", fmt.Sprintf(three, 1, 2, 3, "a"))
	step("A server is down", "Degraded")
	c.heal()
	step("It is back", "Running")

	c.edit(5, "size")
	step("More servers are asked for", "Scaling")
	step("And are on their way", "Scaling")
	c.heal()
	step("They are there", "Running")

	c.edit(3, "size")
	step("Fewer are asked for", "Scaling")
	step("Two are on their way out", "Scaling")
	c.heal()
	step("They are gone", "Running")

	c.edit("17.4", "version")
	step("Another minor is asked for", "Upgrading")
	generation := int(get(c.observed["postgresql"], "metadata", "generation").GetNumberValue())
	c.status("postgresql", fmt.Sprintf(three, generation, 2, 1, "b"))
	step("It rolls", "Upgrading")
	c.heal()
	step("It is there", "Running")

	c.edit(map[string]any{"work_mem": "16MB"}, "parameters")
	step("A parameter is changed", "Upgrading")
	c.heal()
	step("It is there", "Running")
}

func TestDatabaseClusterRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"MySQL":         {reason: "MySQL is for later.", spec: "{size: 1, version: '8.0', engine: mysql}", want: "engine mysql is not available yet: use engine postgresql"},
		"Size0":         {reason: "No server is no database.", spec: "{size: 0, version: '17'}", want: "size must be 1 to 10, is 0"},
		"Size11":        {reason: "More than ten are too many.", spec: "{size: 11, version: '17'}", want: "size must be 1 to 10, is 11"},
		"NoVersion":     {reason: "A version is needed.", spec: "{size: 1}", want: `version "" is not like 17, 17.2 or 17.2.0`},
		"Version13":     {reason: "13 is too old.", spec: "{size: 1, version: '13'}", want: "version 13 is not supported: PostgreSQL 14 to 18 are"},
		"Version19":     {reason: "19 is too new.", spec: "{size: 1, version: '19.1'}", want: "version 19.1 is not supported: PostgreSQL 14 to 18 are"},
		"VersionWord":   {reason: "Words are no version.", spec: "{size: 1, version: latest}", want: `version "latest" is not like 17, 17.2 or 17.2.0`},
		"VersionFour":   {reason: "Four numbers are one too many.", spec: "{size: 1, version: 17.2.0.1}", want: `version "17.2.0.1" is not like 17, 17.2 or 17.2.0`},
		"VersionMinus":  {reason: "There is nothing below zero.", spec: "{size: 1, version: '17.-2'}", want: `version "17.-2" is not like 17, 17.2 or 17.2.0`},
		"VersionPlus":   {reason: "A sign is none.", spec: "{size: 1, version: '+17'}", want: `version "+17" is not like 17, 17.2 or 17.2.0`},
		"Synchronous":   {reason: "One server has nobody to wait for.", spec: "{size: 1, version: '17', synchronous: true}", want: "synchronous needs a size of at least 2, is 1"},
		"OwnParameter":  {reason: "Storeplane sets this one.", spec: "{size: 1, version: '17', parameters: {ssl: 'on', listen_addresses: '*'}}", want: "parameters.listen_addresses is set by Storeplane: leave it out"},
		"NoParameter":   {reason: "This is no parameter.", spec: `{size: 1, version: '17', parameters: {"work mem": 16MB}}`, want: `parameters has "work mem", which is no name of a PostgreSQL parameter`},
		"Injection":     {reason: "Nor is this.", spec: `{size: 1, version: '17', parameters: {"a: b\nc": d}}`, want: `parameters has "a: b\nc", which is no name of a PostgreSQL parameter`},
		"EmptyName":     {reason: "Nor nothing.", spec: `{size: 1, version: '17', parameters: {"": d}}`, want: `parameters has "", which is no name of a PostgreSQL parameter`},
		"RestoreFrom":   {reason: "Restoring is for later.", spec: "{size: 1, version: '17', restoreFrom: {backupRef: {name: b}}}", want: "restoreFrom is not available yet: leave it out"},
		"Backup":        {reason: "Backups are for later.", spec: "{size: 1, version: '17', backup: {enabled: true}}", want: "backup.enabled is not available yet: leave it out"},
		"Databases":     {reason: "More databases are for later.", spec: "{size: 1, version: '17', databases: [{name: a}]}", want: "databases is not available yet: leave it out"},
		"Users":         {reason: "More users are for later.", spec: "{size: 1, version: '17', users: [{name: a}]}", want: "users is not available yet: leave it out"},
		"Hibernated":    {reason: "Hibernation is for later.", spec: "{size: 1, version: '17', hibernated: true}", want: "hibernated is not available yet: leave it out"},
		"Protection":    {reason: "Protection is for later.", spec: "{size: 1, version: '17', deletionProtection: true}", want: "deletionProtection is not available yet: leave it out"},
		"Quantity":      {reason: "No quantity.", spec: "{size: 1, version: '17', storageSize: big}", want: `storageSize must be a quantity above zero, like 20Gi: is "big"`},
		"QuantityZero":  {reason: "Nothing is too little.", spec: "{size: 1, version: '17', storageSize: '0'}", want: `storageSize must be a quantity above zero, like 20Gi: is "0"`},
		"QuantityMinus": {reason: "Less than nothing too.", spec: "{size: 1, version: '17', storageSize: '-1Gi'}", want: `storageSize must be a quantity above zero, like 20Gi: is "-1Gi"`},
		"Type":          {reason: "A wrong type that slipped by the XRD.", spec: "{size: three, version: '17'}", want: "cannot read spec: size: must be a whole number, is a string"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := refused(t, databaseCluster(tc.spec)); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestDatabaseClusterParameters: a claim that sets what Storeplane relies on,
// or has a name that YAML takes for something else, does not get two answers.
func TestDatabaseClusterParameters(t *testing.T) {
	for _, name := range []string{"password_encryption", "on", "null", "true", "12", "1e3", "0x1f", "no"} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, databaseCluster(oneServer))
			c.edit(map[string]any{name: "md5"}, "parameters")
			rsp := c.reconcile()
			if len(rsp.GetResults()) > 0 {
				if !strings.HasPrefix(rsp.GetResults()[0].GetMessage(), "parameters") {
					t.Errorf("want a refusal of parameters, got %v", rsp.GetResults())
				}
				return
			}
			params := patroni(t, c)["postgresql"].(map[string]any)["parameters"].(map[string]any)
			if params[name] != "md5" {
				t.Errorf("want %s: md5 as text or a refusal, got %v", name, params)
			}
		})
	}
}

func TestDatabaseClusterRefusesChanges(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		change func(*cluster)
		want   string
	}{
		"Downgrade":      {reason: "Data of 17 is not read by 16.", spec: production, change: func(c *cluster) { c.edit("16", "version") }, want: "version may not go back: 17.2 → 16"},
		"MinorDowngrade": {reason: "A minor does not go back either.", spec: production, change: func(c *cluster) { c.edit("17.1", "version") }, want: "version may not go back: 17.2 → 17.1"},
		"MinorNumbers":   {reason: "Minors are numbers: 17.10 is newer than 17.2.", spec: "{size: 1, version: '17.10'}", change: func(c *cluster) { c.edit("17.2", "version") }, want: "version may not go back: 17.10 → 17.2"},
		"Major":          {reason: "Data of 17 is not read by 18 as it is.", spec: production, change: func(c *cluster) { c.edit("18", "version") }, want: "version may not change its major: 17.2 → 18: claim a new DatabaseCluster and move the data"},
		"Shrink":         {reason: "Volumes do not shrink, whatever the claim said before.", spec: production, change: func(c *cluster) { c.edit("10Gi", "storageSize") }, want: "storageSize may not shrink: 20Gi → 10Gi"},
		"ShrinkUnits":    {reason: "Quantities are compared, not texts.", spec: production, change: func(c *cluster) { c.edit("20G", "storageSize") }, want: "storageSize may not shrink: 20Gi → 20G"},
		"ShrinkDefault":  {reason: "Also below the default that was taken.", spec: "{size: 1, version: '17'}", change: func(c *cluster) { c.edit("5Gi", "storageSize") }, want: "storageSize may not shrink: 10Gi → 5Gi"},
		"Grow":           {reason: "Growing is for later.", spec: production, change: func(c *cluster) { c.edit("30Gi", "storageSize") }, want: "storageSize can not grow yet: 20Gi → 30Gi"},
		"Engine":         {reason: "Another engine is another database.", spec: production, change: func(c *cluster) { c.edit("mysql", "engine") }, want: "engine mysql is not available yet: use engine postgresql"},
		"LostKey":        {reason: "A lost password is not drawn again.", spec: production, change: func(c *cluster) { delete(fields(c.observed["credentials"], "data"), "replication-password") }, want: "Secret orders-credentials has lost its key replication-password: put it back, or delete the Secret if nothing uses it any more"},
		"Settings":       {reason: "Nonsense of the installation stops nothing that runs.", spec: production, change: func(c *cluster) { c.install("{storageClassName: [fast]}") }, want: "cannot read EnvironmentConfig storeplane: data.storageClassName: must be a string, is a list"},
		"Registry":       {reason: "Nor does a registry that is none.", spec: production, change: func(c *cluster) { c.install("{imageRegistry: 'https://x'}") }, want: `cannot use EnvironmentConfig storeplane: data.imageRegistry must be a registry and path like registry.example.com/storeplane, is "https://x"`},
		"Unreadable":     {reason: "What can not be read is left alone.", spec: production, change: func(c *cluster) { set(c.observed["postgresql"], "three", "spec", "replicas") }, want: "cannot read the observed StatefulSet of component postgresql: spec.replicas: must be a whole number, is a string"},
		"SmallerDefault": {reason: "Another environment's default does not shrink volumes: the claim keeps what it has.", spec: "{size: 1, version: '17', environment: staging}", change: func(c *cluster) { c.edit("development", "environment") }},
		"BiggerDefault":  {reason: "Nor does it grow them.", spec: "{size: 1, version: '17'}", change: func(c *cluster) { c.edit("production", "environment") }},
		"SameQuantity":   {reason: "The same quantity in other words is no change.", spec: production, change: func(c *cluster) { c.edit("20480Mi", "storageSize") }},
		"NewerMinor":     {reason: "A newer minor is fine.", spec: production, change: func(c *cluster) { c.edit("17.3", "version") }},
		"NoMinor":        {reason: "So is to leave the minor to the image.", spec: production, change: func(c *cluster) { c.edit("17", "version") }},
		"ThirdNumber":    {reason: "The third number means nothing.", spec: production, change: func(c *cluster) { c.edit("17.2.0", "version") }},
		"FirstMinor":     {reason: "So is to pin one later.", spec: "{size: 1, version: '17'}", change: func(c *cluster) { c.edit("17.2", "version") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, databaseCluster(tc.spec))
			if got := refusedWhileRunning(t, c, func() { tc.change(c) }); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestDatabaseClusterVolumes: the template of volumes can not be changed once
// the StatefulSet exists, or the API server refuses all of it for ever.
func TestDatabaseClusterVolumes(t *testing.T) {
	template := func(c *cluster) *structpb.Value { return get(c.observed["postgresql"], "spec", "volumeClaimTemplates") }
	cases := map[string]struct {
		reason string
		before string // settings
		change func(*cluster)
	}{
		"InstallationsClass":      {reason: "The installation has another default class now.", before: "{storageClassName: old}", change: func(c *cluster) { c.install("{storageClassName: new}") }},
		"InstallationsFirstClass": {reason: "The installation has a default class now.", change: func(c *cluster) { c.install("{storageClassName: new}") }},
		"InstallationsNoClass":    {reason: "The installation's default class is gone.", before: "{storageClassName: old}", change: func(c *cluster) { c.settings = nil }},
		"ClaimsClass":             {reason: "The claim names a class that it did not name: the XRD does not see that.", change: func(c *cluster) { c.edit("new", "storageClassName") }},
		"Environment":             {reason: "The claim moves to production.", change: func(c *cluster) { c.edit("production", "environment") }},
		"SameQuantity":            {reason: "The claim says the same size in other words.", change: func(c *cluster) { c.edit("10240Mi", "storageSize") }},
		"PlatformLabel":           {reason: "The claim is given a platform.", change: func(c *cluster) { set(c.claim, "store", "metadata", "labels", "platform") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, databaseCluster(oneServer))
			if tc.before != "" {
				c.install(tc.before)
			}
			c.settle()
			before := template(c)
			tc.change(c)
			if rsp := c.reconcile(); len(rsp.GetResults()) > 0 && rsp.GetResults()[0].GetReason() == "Invalid" {
				return // Refused in words: nothing is changed.
			}
			if diff := cmp.Diff(before.AsInterface(), template(c).AsInterface()); diff != "" {
				t.Errorf("%s\nThe template must stay or the change be refused: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDatabaseClusterCredentialsDeleted: with the Secret gone and the data
// there, new passwords would lock everybody out.
func TestDatabaseClusterCredentialsDeleted(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.settle()
	was := c.value("connection", "password")
	delete(c.observed, "credentials")
	rsp := c.reconcile()
	if len(rsp.GetResults()) > 0 {
		return // Refused in words.
	}
	if got := c.value("connection", "password"); got != was {
		t.Errorf("The servers' volumes hold the old password, so applications must be given no other: it was drawn again")
	}
}

func TestDatabaseClusterPasswords(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.settle()
	keys := []string{"password", "replication-password", "rewind-password", "superuser-password"}
	drawn := map[string]string{}
	for _, k := range keys {
		drawn[k] = c.value("credentials", k)
		if len(drawn[k]) != 32 {
			t.Errorf("%s: want 32 characters, got %d", k, len(drawn[k]))
		}
	}
	if n := len(slices.Compact(slices.Sorted(maps.Values(drawn)))); n != 4 {
		t.Errorf("want four different passwords, got %d", n)
	}

	// However often and whatever is asked, they stay.
	for _, change := range []func(){func() {}, func() { c.edit(4, "size") }, func() { c.edit("17.5", "version") }, func() { c.edit(map[string]any{"work_mem": "1MB"}, "parameters") }} {
		change()
		c.settle()
		for _, k := range keys {
			if c.value("credentials", k) != drawn[k] {
				t.Errorf("%s was drawn again", k)
			}
		}
	}

	// An administrator may change one.
	set(c.observed["credentials"], "Y2hhbmdlZA==", "data", "password")
	c.settle()
	if c.value("credentials", "password") != "changed" || c.value("connection", "password") != "changed" || !strings.Contains(c.value("connection", "uri"), ":changed@") {
		t.Errorf("What is in the Secret holds, and goes on to the applications")
	}

	// Another claim has others.
	other := newCluster(t, databaseCluster(production))
	other.settle()
	if other.value("credentials", "password") == drawn["password"] {
		t.Errorf("two claims share a password")
	}
}

func TestDatabaseClusterConnection(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.settle()
	password := c.value("credentials", "password")
	got := map[string]string{}
	for k, v := range as[corev1.Secret](t, c.observed["connection"]).Data {
		got[k] = strings.ReplaceAll(string(v), password, "PASSWORD")
	}
	want := map[string]string{
		"username": "app", "password": "PASSWORD", "dbname": "app", "port": "5432", "host": "orders-primary.team.svc", "ro-host": "orders-replica.team.svc",
		"uri":      "postgresql://app:PASSWORD@orders-primary.team.svc:5432/app?target_session_attrs=read-write",
		"jdbc-uri": "jdbc:postgresql://orders-primary.team.svc:5432/app?user=app&password=PASSWORD&targetServerType=primary",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	one := newCluster(t, databaseCluster(oneServer))
	one.settle()
	if _, ok := fields(one.observed["connection"], "data")["ro-host"]; ok {
		t.Errorf("one server has no host to read only from")
	}
}

// patroni reads the servers' configuration as YAML, refusing what is there
// twice.
func patroni(t testing.TB, c *cluster) map[string]any {
	t.Helper()
	text := as[corev1.ConfigMap](t, c.observed["config"]).Data["patroni.yaml"]
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("patroni.yaml is no YAML: %v\n%s", err, text)
	}
	return out
}

// dynamic reads the configuration that all servers share, as Patroni does.
func dynamic(t testing.TB, c *cluster) map[string]any {
	t.Helper()
	text := get(c.observed["patroni-config"], "metadata", "annotations", "config").GetStringValue()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("Patroni's dynamic configuration is no JSON: %v\n%s", err, text)
	}
	return out
}

// dynamicParameters must be the same on all servers: Patroni takes them from
// nowhere but its dynamic configuration.
var dynamicParameters = []string{"max_connections", "max_locks_per_transaction", "max_prepared_transactions", "max_worker_processes", "track_commit_timestamp"}

// TestDatabaseClusterDynamic: the configuration that all servers share, whole.
func TestDatabaseClusterDynamic(t *testing.T) {
	config := func(synchronous bool, changed map[string]any) map[string]any {
		params := map[string]any{
			"max_connections": "200", "max_locks_per_transaction": "64", "max_prepared_transactions": "0", "max_worker_processes": "8", "track_commit_timestamp": "off",
			"wal_level": "replica", "wal_log_hints": "on", "max_wal_senders": 20.0, "max_replication_slots": 20.0,
		}
		maps.Copy(params, changed)
		return map[string]any{
			"ttl": 20.0, "loop_wait": 5.0, "retry_timeout": 5.0, "maximum_lag_on_failover": 1048576.0, "failsafe_mode": true, "synchronous_mode": synchronous,
			"postgresql": map[string]any{"use_pg_rewind": true, "use_slots": true, "parameters": params},
		}
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   map[string]any
	}{
		"One":        {reason: "One server has nobody to wait for.", spec: oneServer, want: config(false, nil)},
		"Production": {reason: "Production waits for another server.", spec: production, want: config(true, nil)},
		"Parameters": {
			reason: "The claim's values replace the defaults; what is another's is not there.",
			spec:   "{size: 1, version: '17', parameters: {max_connections: '500', track_commit_timestamp: 'on', work_mem: 16MB}}",
			want:   config(false, map[string]any{"max_connections": "500", "track_commit_timestamp": "on"}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, databaseCluster(tc.spec))
			c.reconcile()
			if diff := cmp.Diff(tc.want, dynamic(t, c)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, component := range []string{"patroni-failover", "patroni-sync"} {
				if got := get(c.observed[component], "metadata", "annotations", "config"); got != nil {
					t.Errorf("It is in one place only, got %v in %s", got, component)
				}
			}
		})
	}
}

// TestDatabaseClusterDynamicChanges: what reaches servers that run, and for
// which of it they must restart. Patroni takes up its dynamic configuration by
// itself; parameters that PostgreSQL reads only at its start roll the pods.
func TestDatabaseClusterDynamicChanges(t *testing.T) {
	type want struct{ config, rolls bool }
	cases := map[string]struct {
		reason string
		change func(*cluster)
		want   want
	}{
		"Nothing":      {reason: "Nothing is changed.", change: func(*cluster) {}},
		"Asynchronous": {reason: "Servers take it up as they run.", change: func(c *cluster) { c.edit(false, "synchronous") }, want: want{config: true}},
		"Said":         {reason: "What holds anyway is no change.", change: func(c *cluster) { c.edit(true, "synchronous") }},
		"OneServer":    {reason: "The last server has nobody to wait for.", change: func(c *cluster) { c.edit(1, "size") }, want: want{config: true}},
		"TwoServers":   {reason: "Two still do.", change: func(c *cluster) { c.edit(2, "size") }},
		"Default":      {reason: "To say the default is no change.", change: func(c *cluster) { c.edit(map[string]any{"max_connections": "200"}, "parameters") }},
		"OwnParameter": {reason: "Others are in the file.", change: func(c *cluster) { c.edit(map[string]any{"work_mem": "16MB"}, "parameters") }, want: want{rolls: true}},
		"Both": {
			reason: "Both at once.",
			change: func(c *cluster) {
				c.edit(false, "synchronous")
				c.edit(map[string]any{"max_connections": "500"}, "parameters")
			},
			want: want{config: true, rolls: true},
		},
	}
	for _, name := range dynamicParameters {
		cases["Parameter/"+name] = struct {
			reason string
			change func(*cluster)
			want   want
		}{
			reason: "PostgreSQL reads it when it starts.",
			change: func(c *cluster) { c.edit(map[string]any{name: "17"}, "parameters") },
			want:   want{config: true, rolls: true},
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, databaseCluster(production))
			c.settle()
			template := func() *structpb.Value { return get(c.observed["postgresql"], "spec", "template") }
			config, pods := dynamic(t, c), template()
			tc.change(c)
			c.reconcile()
			got := want{config: !cmp.Equal(config, dynamic(t, c)), rolls: !proto.Equal(pods, template())}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got := get(c.observed["patroni-config"], "metadata", "annotations", "storeplane.example.com/primary").GetStringValue(); got == "" {
				t.Errorf("Who the primary is stays beside it")
			}
			c.settle()
			if c.phase() != "Running" {
				t.Errorf("want Running in the end, got %s, %q", c.phase(), c.message())
			}
		})
	}
}

// TestDatabaseClusterCallback: the script that Patroni calls is Python, and sets
// the passwords from what is mounted, without a secret in its text.
func TestDatabaseClusterCallback(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("There is no python3 to compile the script with: %v", err)
	}
	c := newCluster(t, databaseCluster(production))
	c.settle()
	dir := t.TempDir()
	script := filepath.Join(dir, "on-role.py")
	if err := os.WriteFile(script, []byte(as[corev1.ConfigMap](t, c.observed["config"]).Data["on-role.py"]), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PYTHONPYCACHEPREFIX="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
		}
		return string(out)
	}

	// A warning may be an error of the next Python.
	run("-W", "error", "-m", "py_compile", script)

	// A server that does not lead does nothing: there is neither a psql nor an
	// API server here.
	for _, role := range []string{"replica", "standby_leader", "demoted"} {
		if out := run(script, "on_role_change", role, "orders-postgresql"); out != "" {
			t.Errorf("%s: want nothing to be said, got %q", role, out)
		}
	}

	// What psql is told.
	psql := "#!/bin/sh\necho \"$@\" > " + filepath.Join(dir, "args") + "\ncat > " + filepath.Join(dir, "input") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "psql"), []byte(psql), 0o700); err != nil {
		t.Fatal(err)
	}
	run("-c", "import sys; sys.argv = ['', 'on_role_change', 'replica', 'x']; exec(open('"+script+"').read()); set_passwords()")
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	got := regexp.MustCompile("(?m)^\\\\set password `cat (\\S+)`\nSELECT .*:'password'.* FROM pg_roles WHERE rolname = '(\\w+)' \\\\gexec$").FindAllStringSubmatch(read("input"), -1)
	files := map[string]string{}
	for _, m := range got {
		files[m[2]] = m[1]
	}
	mount := "/etc/storeplane/credentials/"
	want := map[string]string{"app": mount + "password", "postgres": mount + "superuser-password", "standby": mount + "replication-password", "rewind": mount + "rewind-password"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("Each role has its file: -want, +got:\n%s\n%s", diff, read("input"))
	}
	for _, k := range []string{"password", "superuser-password", "replication-password", "rewind-password"} {
		if v := c.value("credentials", k); strings.Contains(read("input")+read("args"), v) {
			t.Errorf("%s is in what psql is told: it is to read it itself", k)
		}
	}
}

// TestDatabaseClusterCredentialsMounted: all of the Secret is in the pods, where
// the scripts look for it, and other users can not read it.
func TestDatabaseClusterCredentialsMounted(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.settle()
	pod := as[k8sappsv1.StatefulSet](t, c.observed["postgresql"]).Spec.Template.Spec
	i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == as[corev1.Secret](t, c.observed["credentials"]).Name
	})
	if i < 0 {
		t.Fatalf("want a volume of the credentials, got %v", pod.Volumes)
	}
	v := pod.Volumes[i]
	if len(v.Secret.Items) > 0 {
		t.Errorf("want all its keys, got %v", v.Secret.Items)
	}
	if v.Secret.DefaultMode == nil || *v.Secret.DefaultMode&0o007 != 0 {
		t.Errorf("want files that others can not read, got %v", v.Secret.DefaultMode)
	}
	if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == v.Name && m.MountPath == "/etc/storeplane/credentials" && m.ReadOnly
	}) {
		t.Errorf("want it where the scripts look for it, got %v", pod.Containers[0].VolumeMounts)
	}
}

func TestDatabaseClusterPatroni(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.edit(map[string]any{"work_mem": "16MB", "max_connections": "500"}, "parameters")
	c.settle()
	p := patroni(t, c)
	dcs := dynamic(t, c)
	if diff := cmp.Diff(dcs, p["bootstrap"].(map[string]any)["dcs"]); diff != "" {
		t.Errorf("A server that can not read what all servers share begins with the same: -shared, +its own:\n%s", diff)
	}
	if dcs["synchronous_mode"] != true || dcs["failsafe_mode"] != true {
		t.Errorf("production is synchronous, and keeps its primary without the API server: got %v", dcs)
	}
	if got := dcs["postgresql"].(map[string]any)["parameters"].(map[string]any)["max_connections"]; got != "500" {
		t.Errorf("What must be the same on all servers is Patroni's to set: want max_connections 500, got %v", got)
	}
	pg := p["postgresql"].(map[string]any)
	if got := pg["parameters"].(map[string]any)["work_mem"]; got != "16MB" {
		t.Errorf("want work_mem 16MB, got %v", got)
	}
	if got, ok := pg["parameters"].(map[string]any)["max_connections"]; ok {
		t.Errorf("and it is in no other place, got max_connections %v in patroni.yaml", got)
	}
	for _, line := range pg["pg_hba"].([]any) {
		if f := strings.Fields(line.(string)); f[0] != "local" && f[len(f)-1] != "scram-sha-256" {
			t.Errorf("nobody comes in over the network without a password: %s", line)
		}
	}

	// Patroni finds its pods and its objects by these labels.
	k := p["kubernetes"].(map[string]any)
	set := as[k8sappsv1.StatefulSet](t, c.observed["postgresql"])
	labels := map[string]string{k["scope_label"].(string): p["scope"].(string)}
	for n, v := range k["labels"].(map[string]any) {
		labels[n] = v.(string)
	}
	for _, where := range []map[string]string{set.Spec.Template.Labels, as[corev1.ConfigMap](t, c.observed["patroni-config"]).Labels, as[corev1.ConfigMap](t, c.observed["patroni-failover"]).Labels, as[corev1.ConfigMap](t, c.observed["patroni-sync"]).Labels} {
		for n, v := range labels {
			if where[n] != v {
				t.Errorf("Patroni looks for %s=%s, which is not among %v", n, v, where)
			}
		}
	}
	for component, suffix := range map[string]string{"patroni-config": "config", "patroni-failover": "failover", "patroni-sync": "sync"} {
		if got := as[corev1.ConfigMap](t, c.observed[component]).Name; got != p["scope"].(string)+"-"+suffix {
			t.Errorf("Patroni's %s is named %s-%s, got %s", suffix, p["scope"], suffix, got)
		}
		if data := as[corev1.ConfigMap](t, c.observed[component]).Data; len(data) > 0 {
			t.Errorf("%s is Patroni's to fill, got %v", component, data)
		}
	}
	for component, value := range map[string]any{"primary": k["leader_label_value"], "replica": k["follower_label_value"]} {
		if got := as[corev1.Service](t, c.observed[component]).Spec.Selector[k["role_label"].(string)]; got != value {
			t.Errorf("Service %s selects role %s, Patroni writes %v", component, got, value)
		}
	}

	// A change of the configuration rolls the servers.
	hash := func() string {
		return get(c.observed["postgresql"], "spec", "template", "metadata", "annotations", "storeplane.example.com/config-hash").GetStringValue()
	}
	before := hash()
	c.edit("32MB", "parameters", "work_mem")
	c.settle()
	if before == "" || hash() == before {
		t.Errorf("a change of the configuration changes the pods: got %q, %q", before, hash())
	}
}

// TestDatabaseClusterPatroniNames: a claim may have any name that the XRD lets
// through, also one that YAML takes for something else than text.
func TestDatabaseClusterPatroniNames(t *testing.T) {
	for _, name := range []string{"orders", "no", "on", "yes", "off", "true", "false", "null", "n", "y", "e1", "a-1"} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, strings.Replace(databaseCluster(oneServer), "name: orders", "name: '"+name+"'", 1))
			c.reconcile()
			p := patroni(t, c)
			labels := p["kubernetes"].(map[string]any)["labels"].(map[string]any)
			if got := labels["app.kubernetes.io/instance"]; got != name {
				t.Errorf("Patroni looks for pods of instance %v (%T), want the text %q", got, got, name)
			}
			if got := p["scope"]; got != name+"-postgresql" {
				t.Errorf("want scope %s-postgresql, got %v", name, got)
			}
		})
	}
}

// TestDatabaseClusterHostileParameters: whatever a value holds, it stays one
// value.
func TestDatabaseClusterHostileParameters(t *testing.T) {
	names := rapid.SampledFrom(append([]string{"work_mem", "shared_preload_libraries", "log_line_prefix", "search_path", "pg_stat_statements.max"}, dynamicParameters...))
	values := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		`"`, `\`, `'`, "a\nb", "a: b", "- x", "#", "{{x}}", "%", "", " ", "\t", "\x00", "\x7f", "\u0085", "\u2028", "\ufeff", "ünï", "😀", "on", "null", "017", "1e3", "~", "!!binary x", "&a *a",
		"x'\n  pg_hba:\n    - host all all all trust\n", `","wal_level":"minimal`, `\"`, "\\\n", `</script>&`,
	}))
	claim := databaseCluster(oneServer)
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.MapOfN(names, values, 0, 4).Draw(rt, "parameters")
		c := newCluster(t, claim)
		params := map[string]any{}
		for k, v := range want {
			params[k] = v
		}
		c.edit(params, "parameters")
		if rsp := c.reconcile(); len(rsp.GetResults()) > 0 {
			rt.Fatalf("refused: %v", rsp.GetResults())
		}
		p := patroni(t, c)
		file := p["postgresql"].(map[string]any)["parameters"].(map[string]any)
		dcs := dynamic(t, c)["postgresql"].(map[string]any)["parameters"].(map[string]any)
		for k, v := range want {
			here, elsewhere := file, dcs
			if slices.Contains(dynamicParameters, k) {
				here, elsewhere = dcs, file
			}
			if here[k] != v {
				rt.Fatalf("%s: want %q, got %v", k, v, here[k])
			}
			if other, ok := elsewhere[k]; ok {
				rt.Fatalf("%s is in one place only, got %v in the other", k, other)
			}
		}
		if len(dcs) != 9 || len(dynamic(t, c)) != 7 {
			rt.Fatalf("want no more than what is Storeplane's, got %v", dynamic(t, c))
		}
		if hba := p["postgresql"].(map[string]any)["pg_hba"].([]any); len(hba) != 4 {
			rt.Fatalf("want four lines of pg_hba, got %v", hba)
		}
	})
}

func TestDatabaseClusterEnvironments(t *testing.T) {
	type want struct {
		storage, whenDeleted     string
		budget, spread, affinity bool
		synchronous              any
		backup                   string
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   want
	}{
		"Development": {
			reason: "The most frugal.", spec: "{size: 1, version: '17', environment: development}",
			want: want{storage: "10Gi", whenDeleted: "Delete", synchronous: false, backup: "True"},
		},
		"None": {
			reason: "Without one it is development.", spec: "{size: 2, version: '17'}",
			want: want{storage: "10Gi", whenDeleted: "Delete", synchronous: false, backup: "True"},
		},
		"Staging": {
			reason: "Available, not protected.", spec: "{size: 2, version: '17', environment: staging}",
			want: want{storage: "50Gi", whenDeleted: "Delete", budget: true, spread: true, affinity: true, synchronous: false, backup: "False"},
		},
		"Production": {
			reason: "The safest.", spec: "{size: 3, version: '17', environment: production}",
			want: want{storage: "100Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, synchronous: true, backup: "False"},
		},
		"Overridden": {
			reason: "Every default gives way to its field.", spec: "{size: 3, version: '17', environment: production, storageSize: 1Gi, synchronous: false, backup: {enabled: false}}",
			want: want{storage: "1Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, synchronous: false, backup: "True"},
		},
		"ProductionOfOne": {
			reason: "One server can not wait for another.", spec: "{size: 1, version: '17', environment: production}",
			want: want{storage: "100Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, synchronous: false, backup: "False"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, databaseCluster(tc.spec))
			c.settle()
			set := as[k8sappsv1.StatefulSet](t, c.observed["postgresql"])
			q := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
			got := want{
				storage: q.String(), whenDeleted: string(set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted),
				budget: c.observed["disruptionbudget"] != nil, spread: len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0, affinity: set.Spec.Template.Spec.Affinity != nil,
				synchronous: dynamic(t, c)["synchronous_mode"],
			}
			got.backup, _ = c.condition("BackupHealthy")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got := set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled; got != k8sappsv1.RetainPersistentVolumeClaimRetentionPolicyType {
				t.Errorf("Scaling down keeps the data: got %s", got)
			}
			if pdb := c.observed["disruptionbudget"]; pdb != nil {
				if diff := cmp.Diff(set.Spec.Selector.MatchLabels, as[policyv1.PodDisruptionBudget](t, pdb).Spec.Selector.MatchLabels); diff != "" {
					t.Errorf("The budget is of the servers: -want, +got:\n%s", diff)
				}
			}
		})
	}
}

func TestDatabaseClusterRights(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.settle()
	role, binding := as[rbacv1.Role](t, c.observed["role"]), as[rbacv1.RoleBinding](t, c.observed["rolebinding"])
	account := as[corev1.ServiceAccount](t, c.observed["account"])
	if binding.RoleRef.Name != role.Name || binding.Subjects[0].Name != account.Name || binding.Subjects[0].Namespace != "team" {
		t.Errorf("got %v for Role %s and ServiceAccount %s", binding, role.Name, account.Name)
	}
	if got := as[k8sappsv1.StatefulSet](t, c.observed["postgresql"]).Spec.Template.Spec.ServiceAccountName; got != account.Name {
		t.Errorf("The pods run as %s, the account is %s", got, account.Name)
	}
	for _, r := range role.Rules {
		for _, x := range slices.Concat(r.APIGroups, r.Resources, r.Verbs) {
			if x == "*" || x == "secrets" || strings.HasPrefix(x, "delete") {
				t.Errorf("Patroni needs no %s: %v", x, r)
			}
		}
	}
}

// TestDatabaseClusterSettings: what the installation says holds where the claim is silent.
func TestDatabaseClusterSettings(t *testing.T) {
	c := newCluster(t, databaseCluster(oneServer))
	c.install("{imageRegistry: 'registry.local:5000/mine', storageClassName: fast}")
	c.settle()
	set := as[k8sappsv1.StatefulSet](t, c.observed["postgresql"])
	if got := set.Spec.Template.Spec.Containers[0].Image; got != "registry.local:5000/mine/postgresql:17" {
		t.Errorf("got image %s", got)
	}
	if got := set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName; got == nil || *got != "fast" {
		t.Errorf("got storage class %v", got)
	}
}

// TestDatabaseClusterUnreadable: a status that can not be read is our error.
func TestDatabaseClusterUnreadable(t *testing.T) {
	c := newCluster(t, databaseCluster(oneServer))
	c.settle()
	set(c.observed["postgresql"], "three", "status", "readyReplicas")
	rsp := c.run()
	want := "cannot read the observed StatefulSet of component postgresql: status.readyReplicas: must be a whole number, is a string"
	if r := rsp.GetResults(); len(r) != 1 || r[0].GetMessage() != want || r[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL || r[0].GetReason() != "InternalError" {
		t.Errorf("want a fatal result %q, got %v", want, r)
	}
}

// TestDatabaseClusterLostKeysDoNotFlap: with all keys lost the same one is
// named each time.
func TestDatabaseClusterLostKeysDoNotFlap(t *testing.T) {
	c := newCluster(t, databaseCluster(oneServer))
	c.settle()
	delete(fields(c.observed["credentials"]), "data")
	first := c.run().GetResults()[0].GetMessage()
	for range 50 {
		if again := c.run().GetResults()[0].GetMessage(); again != first {
			t.Fatalf("The same input gave two errors:\n%s\n%s", first, again)
		}
	}
}
