package databasecluster_test

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/instance"
)

func TestRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"MySQLMemory":   {reason: "The kernel would kill each server as it joins its group.", spec: "{size: 1, version: '9.7', engine: mysql, resources: {limits: {memory: 512Mi}}}", want: "resources.limits.memory must be at least 768Mi with engine mysql, is 512Mi"},
		"MySQL":         {reason: "An engine has versions of its own.", spec: "{size: 1, version: '8.0', engine: mysql}", want: "version 8.0 is not supported: MySQL 9.7 is"},
		"Size0":         {reason: "No server is no database.", spec: "{size: 0, version: '17'}", want: "size must be 1 to 10, is 0"},
		"Size11":        {reason: "More than ten are too many.", spec: "{size: 11, version: '17'}", want: "size must be 1 to 10, is 11"},
		"NoVersion":     {reason: "A version is needed.", spec: "{size: 1}", want: `version "" is not like 17, 17.2 or 17.2.0`},
		"Version13":     {reason: "13 is too old.", spec: "{size: 1, version: '13'}", want: "version 13 is not supported: PostgreSQL 14 to 18 are"},
		"Version19":     {reason: "19 is too new.", spec: "{size: 1, version: '19.1'}", want: "version 19.1 is not supported: PostgreSQL 14 to 18 are"},
		"VersionWord":   {reason: "Words are no version.", spec: "{size: 1, version: latest}", want: `version "latest" is not like 17, 17.2 or 17.2.0`},
		"VersionFour":   {reason: "Four numbers are one too many.", spec: "{size: 1, version: 17.2.0.1}", want: `version "17.2.0.1" is not like 17, 17.2 or 17.2.0`},
		"VersionMinus":  {reason: "There is nothing below zero.", spec: "{size: 1, version: '17.-2'}", want: `version "17.-2" is not like 17, 17.2 or 17.2.0`},
		"VersionPlus":   {reason: "A sign is none.", spec: "{size: 1, version: '+17'}", want: `version "+17" is not like 17, 17.2 or 17.2.0`},
		"VersionHuge":   {reason: "Nor is what no computer counts to.", spec: "{size: 1, version: '99999999999999999999'}", want: `version "99999999999999999999" is not like 17, 17.2 or 17.2.0`},
		"Synchronous":   {reason: "One server has no standby to wait for.", spec: "{size: 1, version: '17', synchronous: true}", want: "synchronous needs a size of at least 2, is 1"},
		"OwnParameter":  {reason: "Storeplane sets this one.", spec: "{size: 1, version: '17', parameters: {ssl: 'on', listen_addresses: '*'}}", want: "parameters.listen_addresses is set by Storeplane: leave it out"},
		"NoParameter":   {reason: "This is no parameter.", spec: `{size: 1, version: '17', parameters: {"work mem": 16MB}}`, want: `parameters has "work mem", which is no name of a PostgreSQL parameter`},
		"Injection":     {reason: "Nor is this.", spec: `{size: 1, version: '17', parameters: {"a: b\nc": d}}`, want: `parameters has "a: b\nc", which is no name of a PostgreSQL parameter`},
		"EmptyName":     {reason: "Nor nothing.", spec: `{size: 1, version: '17', parameters: {"": d}}`, want: `parameters has "", which is no name of a PostgreSQL parameter`},
		"RestoreFrom":   {reason: "Without the provider there are no Backups.", spec: "{size: 1, version: '17', restoreFrom: {backupRef: {name: b}}}", want: "restoreFrom.backupRef: there are no Backups in this cluster: install provider-storeplane, or create the claim again with restoreFrom.destination"},
		"RestoreFuture": {reason: "What has not happened cannot be restored.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: volume, bucket: b}, name: orders, time: '2999-01-01T00:00:00Z'}}", want: "restoreFrom.time has not come yet: 2999-01-01T00:00:00Z"},
		"BackupSecret":  {reason: "pgBackRest speaks by TLS alone.", spec: "{size: 1, version: '17', backup: {enabled: true, destination: {type: s3, bucket: b, endpoint: 'http://store'}}}", want: "backup.destination: endpoint \"http://store\" must begin with https://: pgBackRest speaks to object stores by TLS alone"},
		"Quantity":      {reason: "No quantity.", spec: "{size: 1, version: '17', storageSize: big}", want: `storageSize must be a quantity above zero, like 20Gi: is "big"`},
		"QuantityZero":  {reason: "Nothing is too little.", spec: "{size: 1, version: '17', storageSize: '0'}", want: `storageSize must be a quantity above zero, like 20Gi: is "0"`},
		"QuantityMinus": {reason: "Less than nothing too.", spec: "{size: 1, version: '17', storageSize: '-1Gi'}", want: `storageSize must be a quantity above zero, like 20Gi: is "-1Gi"`},
		"Type":          {reason: "A wrong type that slipped by the XRD.", spec: "{size: three, version: '17'}", want: "cannot read spec: size: must be a whole number, is a string"},

		"UserApp":           {reason: "Every cluster has this user.", spec: "{size: 1, version: '17', users: [{name: app}]}", want: "users has app, which is a reserved user name: choose another"},
		"UserSuperuser":     {reason: "The superuser is no user of a claim.", spec: "{size: 1, version: '17', users: [{name: postgres}]}", want: "users has postgres, which is a reserved user name: choose another"},
		"UserReplication":   {reason: "Nor is Patroni's replication.", spec: "{size: 1, version: '17', users: [{name: standby}]}", want: "users has standby, which is a reserved user name: choose another"},
		"UserRewind":        {reason: "Nor its rewind.", spec: "{size: 1, version: '17', users: [{name: rewind}]}", want: "users has rewind, which is a reserved user name: choose another"},
		"UserMonitoring":    {reason: "Nor who reads the metrics.", spec: "{size: 1, version: '17', users: [{name: monitoring}]}", want: "users has monitoring, which is a reserved user name: choose another"},
		"UserPublic":        {reason: "PostgreSQL refuses this one.", spec: "{size: 1, version: '17', users: [{name: public}]}", want: "users has public, which is a reserved user name: choose another"},
		"UserPg":            {reason: "And all that begin like its own.", spec: "{size: 1, version: '17', users: [{name: pg_reader}]}", want: "users has pg_reader, which is a reserved user name: choose another"},
		"UserTrailing":      {reason: "No Secret's name ends with a hyphen.", spec: "{size: 1, version: '17', users: [{name: reader_}]}", want: "users has reader_: a name may not end with _, since a Secret is named after it"},
		"UserTwice":         {reason: "The XRD sees this first.", spec: "{size: 1, version: '17', users: [{name: a}, {name: b}, {name: a}]}", want: "users has a twice"},
		"DatabaseApp":       {reason: "Every cluster has this database.", spec: "{size: 1, version: '17', databases: [{name: app}]}", want: "databases has app, which every cluster has: choose another"},
		"DatabasePostgres":  {reason: "And this one.", spec: "{size: 1, version: '17', databases: [{name: postgres}]}", want: "databases has postgres, which every cluster has: choose another"},
		"DatabaseTemplate":  {reason: "And those that are copied.", spec: "{size: 1, version: '17', databases: [{name: template1}]}", want: "databases has template1, which every cluster has: choose another"},
		"DatabaseTwice":     {reason: "The XRD sees this first.", spec: "{size: 1, version: '17', databases: [{name: shop}, {name: shop}]}", want: "databases has shop twice"},
		"DatabaseOfNobody":  {reason: "An owner must be among the users.", spec: "{size: 1, version: '17', databases: [{name: shop, owner: clerk}]}", want: "databases.shop.owner is clerk, which is not in users: add it"},
		"DatabaseOfServers": {reason: "The servers' own users own nothing.", spec: "{size: 1, version: '17', databases: [{name: shop, owner: postgres}]}", want: "databases.shop.owner is postgres, which is not in users: add it"},

		"UserOfDatabase":     {reason: "A user may be named like a database.", spec: "{size: 1, version: '17', users: [{name: shop}], databases: [{name: shop, owner: shop}]}"},
		"DatabaseOfApp":      {reason: "Who every cluster has may own one.", spec: "{size: 1, version: '17', databases: [{name: shop, owner: app}]}"},
		"UserLeading":        {reason: "A name may begin with _.", spec: "{size: 1, version: '17', users: [{name: _a}]}"},
		"Hibernated":         {reason: "A claim may begin asleep.", spec: "{size: 1, version: '17', hibernated: true}"},
		"SynchronousOff":     {reason: "One server may say that it waits for none.", spec: "{size: 1, version: '17', synchronous: false}"},
		"BackupOff":          {reason: "To want no backups is fine.", spec: "{size: 1, version: '17', backup: {enabled: false}}"},
		"BackupPartly":       {reason: "So is to say when they would be made.", spec: "{size: 1, version: '17', backup: {schedule: '0 3 * * *'}}"},
		"ExtensionParameter": {reason: "Extensions' parameters have a dot.", spec: "{size: 1, version: '17', parameters: {pg_stat_statements.max: '5000'}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := functionstest.Refused(t, functionstest.DatabaseCluster(tc.spec)); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestOwnParameters: parameters on which Storeplane or Patroni relies are refused, wherever they
// would be set.
func TestOwnParameters(t *testing.T) {
	for _, name := range []string{
		"allow_alter_system", "archive_cleanup_command", "archive_command", "archive_mode", "cluster_name", "data_directory", "hba_file", "hot_standby", "ident_file", "listen_addresses", "max_replication_slots",
		"max_wal_senders", "password_encryption", "port", "primary_conninfo", "recovery_end_command", "recovery_target_time", "restore_command", "ssl", "ssl_cert_file", "ssl_key_file",
		"ssl_passphrase_command", "synchronous_standby_names", "unix_socket_directories", "wal_level", "wal_log_hints",
	} {
		t.Run(name, func(t *testing.T) {
			want := "parameters." + name + " is set by Storeplane: leave it out"
			if got := functionstest.Refused(t, functionstest.DatabaseCluster("{size: 1, version: '17', parameters: {"+name+": x}}")); got != want {
				t.Errorf("want %q, got %q", want, got)
			}
		})
	}
}

// version edits the version while the servers report the versions in run, of which the last one
// holds for all further servers. Without run they report none.
func version(want string, run ...string) func(*crossplane) {
	if len(run) == 0 {
		run = []string{""}
	}
	return func(c *crossplane) {
		for i := range int32(functionstest.Get(c.Claim, "spec", "size").GetNumberValue()) {
			c.ReportMember(i, func(m *instance.Member) { m.Version = run[min(int(i), len(run)-1)] })
		}
		c.Edit(want, "version")
	}
}

func TestRefusesChanges(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		change func(*crossplane)
		want   string
	}{
		"Downgrade":       {reason: "Data of 17 is not read by 16.", spec: functionstest.Production, change: version("16", "17.2"), want: "version may not go back: 17.2 → 16"},
		"MinorDowngrade":  {reason: "A minor does not go back either.", spec: functionstest.Production, change: version("17.1", "17.2"), want: "version may not go back: 17.2 → 17.1"},
		"MinorNumbers":    {reason: "Minors are numbers: 17.10 is newer than 17.2.", spec: "{size: 1, version: '17.10'}", change: version("17.2", "17.10"), want: "version may not go back: 17.10 → 17.2"},
		"MinorOfImage":    {reason: "What runs counts, where the claim left it to the image.", spec: functionstest.OneServer, change: version("17.2", "17.11"), want: "version may not go back: 17.11 → 17.2"},
		"MinorOfOne":      {reason: "The newest that ran counts: its data is what a standby copies.", spec: functionstest.Production, change: version("17.3", "17.2", "17.4", "17.2"), want: "version may not go back: 17.4 → 17.3"},
		"Major":           {reason: "Data of 17 is not read by 18 as it is.", spec: functionstest.Production, change: version("18", "17.2"), want: "version may not change its major: 17.2 → 18: claim a new DatabaseCluster and move the data"},
		"MajorSilent":     {reason: "Also when no server has told what it runs.", spec: functionstest.Production, change: version("18"), want: "version may not change its major: 17 → 18: claim a new DatabaseCluster and move the data"},
		"DowngradeSilent": {reason: "In both directions.", spec: functionstest.Production, change: version("16"), want: "version may not go back: 17 → 16"},
		"MajorAsleep": {
			reason: "Nor while it sleeps.", spec: functionstest.OneServer, change: func(c *crossplane) {
				c.ReportMember(0, func(m *instance.Member) { m.Version = "" })
				c.Edit(true, "hibernated")
				c.Settle()
				c.Edit("18", "version")
			},
			want: "version may not change its major: 17 → 18: claim a new DatabaseCluster and move the data",
		},
		"MajorEmpty":    {reason: "Where no server ever ran there is no data that does not fit.", spec: "{size: 1, version: '17', hibernated: true}", change: func(c *crossplane) { c.Edit("18", "version") }},
		"Shrink":        {reason: "Volumes do not shrink, whatever the claim said before.", spec: functionstest.Production, change: func(c *crossplane) { c.Edit("10Gi", "storageSize") }, want: "storageSize may not shrink: 20Gi → 10Gi"},
		"ShrinkUnits":   {reason: "Quantities are compared, not texts.", spec: functionstest.Production, change: func(c *crossplane) { c.Edit("20G", "storageSize") }, want: "storageSize may not shrink: 20Gi → 20G"},
		"ShrinkDefault": {reason: "Also below the default that was taken.", spec: "{size: 1, version: '17'}", change: func(c *crossplane) { c.Edit("5Gi", "storageSize") }, want: "storageSize may not shrink: 10Gi → 5Gi"},
		"ShrinkGrown": {
			reason: "Nor below what the servers were told since.", spec: functionstest.Production,
			change: func(c *crossplane) {
				c.Edit("30Gi", "storageSize")
				c.Settle()
				c.Edit("25Gi", "storageSize")
			},
			want: "storageSize may not shrink: 30Gi → 25Gi",
		},
		"OwnerGone":      {reason: "A database does not lose its owner.", spec: "{size: 1, version: '17', users: [{name: clerk}], databases: [{name: shop, owner: clerk}]}", change: func(c *crossplane) { c.Edit(nil, "users") }, want: "databases.shop.owner is clerk, which is not in users: add it"},
		"Settings":       {reason: "Nonsense of the installation stops nothing that runs.", spec: functionstest.Production, change: func(c *crossplane) { c.InstallSettings("{storageClassName: [fast]}") }, want: "cannot read EnvironmentConfig storeplane: data.storageClassName: must be a string, is a list"},
		"Registry":       {reason: "Nor does a registry that is none.", spec: functionstest.Production, change: func(c *crossplane) { c.InstallSettings("{imageRegistry: 'https://x'}") }, want: `cannot use EnvironmentConfig storeplane: data.imageRegistry must be a registry and path like registry.example.com/storeplane, is "https://x"`},
		"Unreadable":     {reason: "What cannot be read is left alone.", spec: functionstest.Production, change: func(c *crossplane) { functionstest.Set(c.Observed["postgresql"], "three", "spec", "replicas") }, want: "cannot read the observed StatefulSet of component postgresql: spec.replicas: must be a whole number, is a string"},
		"SmallerDefault": {reason: "Another environment's default does not shrink volumes: the claim keeps what it has.", spec: "{size: 1, version: '17', environment: staging}", change: func(c *crossplane) { c.Edit("development", "environment") }},
		"BiggerDefault":  {reason: "Nor does it grow them.", spec: "{size: 1, version: '17'}", change: func(c *crossplane) { c.Edit("production", "environment") }},
		"SameQuantity":   {reason: "The same quantity in other words is no change.", spec: functionstest.Production, change: func(c *crossplane) { c.Edit("20480Mi", "storageSize") }},
		"Grow":           {reason: "Volumes grow.", spec: functionstest.Production, change: func(c *crossplane) { c.Edit("30Gi", "storageSize") }},
		"NewerMinor":     {reason: "A newer minor is fine.", spec: functionstest.Production, change: version("17.3", "17.2")},
		"NoMinor":        {reason: "So is to leave the minor to the image.", spec: functionstest.Production, change: version("17", "17.2")},
		"RolledOut":      {reason: "What was rolled out stays accepted, whatever its image says it is.", spec: functionstest.Production, change: version("17.2", "17.4")},
		"RolledOutMajor": {reason: "Even that it is another major.", spec: functionstest.Production, change: version("17.2", "18.1")},
		"RolledOutWords": {reason: "In whichever words.", spec: functionstest.Production, change: version("17.2.0", "17.4")},
		"RolledOutOther": {reason: "What was not is compared with what runs.", spec: functionstest.Production, change: version("17.1", "17.4"), want: "version may not go back: 17.4 → 17.1"},
		"FormerServer": {reason: "A server that is gone runs nothing.", spec: functionstest.Production, change: func(c *crossplane) {
			c.Report("orders-postgresql-3.json", `{"version":"17.9"}`)
			c.Edit("17.3", "version")
		}},
		"LeavingServer": {
			reason: "One that is still held does.", spec: functionstest.Production,
			change: func(c *crossplane) {
				c.Edit(2, "size")
				c.Reconcile()
				c.ReportMember(2, func(m *instance.Member) { m.Version = "17.9" })
				c.Edit("17.3", "version")
			},
			want: "version may not go back: 17.9 → 17.3",
		},
		"SleepingServer": {
			reason: "And one that sleeps: its data is there.", spec: functionstest.Production,
			change: func(c *crossplane) {
				c.Edit(true, "hibernated")
				c.Settle()
				c.ReportMember(2, func(m *instance.Member) { m.Version = "17.9" })
				c.Edit("17.3", "version")
			},
			want: "version may not go back: 17.9 → 17.3",
		},
		"ThirdNumber":    {reason: "The third number means nothing.", spec: functionstest.Production, change: version("17.2.0", "17.2")},
		"FirstMinor":     {reason: "So is to pin what runs.", spec: functionstest.OneServer, change: version("17.2", "17.2")},
		"NeverRan":       {reason: "And to go back from an image that never ran.", spec: "{size: 1, version: '17.99'}", change: version("17.2", "17.1")},
		"StrangeVersion": {reason: "A report that is no version counts for nothing.", spec: functionstest.Production, change: version("17.1", "17.2beta1")},
		"StrangeLabel": {reason: "A label that we did not write is none to compare with.", spec: functionstest.Production, change: func(c *crossplane) {
			functionstest.Set(c.Observed["postgresql"], "stable", "metadata", "labels", "app.kubernetes.io/version")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			if got := functionstest.RefusedWhileRunning(t, c, func() { tc.change(c) }); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestUnreadable: a status that cannot be read is an internal error.
func TestUnreadable(t *testing.T) {
	c := simulate(t, functionstest.OneServer)
	c.Settle()
	functionstest.Set(c.Observed["postgresql"], "three", "status", "readyReplicas")
	rsp := c.Run()
	want := "cannot read the observed StatefulSet of component postgresql: status.readyReplicas: must be a whole number, is a string"
	if r := rsp.GetResults(); len(r) != 1 || r[0].GetMessage() != want || r[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL || r[0].GetReason() != "InternalError" {
		t.Errorf("want a fatal result %q, got %v", want, r)
	}
}

// TestUnreadableReports: reports of the pods that cannot be read do not stop the claim. They are
// treated like missing ones.
func TestUnreadableReports(t *testing.T) {
	type want struct{ phase, message string }
	notElected := want{"Degraded", "Waiting for postgresql (No primary has been elected yet)"}
	running := want{phase: "Running"}
	cases := map[string]struct {
		reason string
		change func(*crossplane)
		want   want
	}{
		"Cluster":     {reason: "Nonsense names no primary.", change: func(c *crossplane) { c.Report("cluster.json", "{") }, want: notElected},
		"ClusterText": {reason: "Nor does another type.", change: func(c *crossplane) { c.Report("cluster.json", `"orders-postgresql-0"`) }, want: notElected},
		"Empty":       {reason: "Nor nothing.", change: func(c *crossplane) { c.Report("cluster.json", "") }, want: notElected},
		"NoData":      {reason: "Nor an empty ConfigMap.", change: func(c *crossplane) { delete(c.Observed["instances"].Fields, "data") }, want: notElected},
		"Gone":        {reason: "Nor one that was deleted.", change: func(c *crossplane) { delete(c.Observed, "instances") }, want: notElected},
		"NoText":      {reason: "Nor one whose values are none.", change: func(c *crossplane) { functionstest.Set(c.Observed["instances"], 7, "data", "cluster.json") }, want: notElected},
		"Member":      {reason: "A server that tells nothing readable has no trouble to tell of.", change: func(c *crossplane) { c.Report("orders-postgresql-1.json", "[]") }, want: running},
		"Stranger":    {reason: "The report of one that is no server is ignored.", change: func(c *crossplane) { c.Report("orders-postgresql-77.json", `{"filling":95,"restart":true}`) }, want: running},
		"Key":         {reason: "So is a key of no server.", change: func(c *crossplane) { c.Report("notes", "x") }, want: running},
		"Unknown":     {reason: "A newer manager may tell more.", change: func(c *crossplane) { c.Report("orders-postgresql-0.json", `{"capacity":"20Gi","mood":"good"}`) }, want: running},
		"Capacity":    {reason: "A size that is none is none that grows.", change: func(c *crossplane) { c.Report("orders-postgresql-0.json", `{"capacity":"much"}`) }, want: running},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Settle()
			before := proto.CloneOf(c.Observed["postgresql"])
			tc.change(c)
			if rsp := c.Reconcile(); len(rsp.GetResults()) > 0 {
				t.Fatalf("%s\nrefused: %v", tc.reason, rsp.GetResults())
			}
			if got := (want{c.Phase(), c.Message()}); got != tc.want {
				t.Errorf("%s\nwant %+v, got %+v", tc.reason, tc.want, got)
			}
			if !proto.Equal(before, c.Observed["postgresql"]) {
				t.Errorf("%s\nthe servers are left alone", tc.reason)
			}
		})
	}
}

// TestUnreadableDesire: if the desired state of the instance managers cannot be read, it is written
// again, and volumes do not shrink by that.
func TestUnreadableDesire(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	want := desiredOf(t, c)
	for _, text := range []any{"{", "", 7} {
		functionstest.Set(c.Observed["config"], text, "data", "instance.json")
		if rsp := c.Reconcile(); len(rsp.GetResults()) > 0 {
			t.Fatalf("refused: %v", rsp.GetResults())
		}
		if got := desiredOf(t, c); got.Storage != want.Storage || got.Size != want.Size {
			t.Errorf("want %+v, got %+v", want, got)
		}
	}
}

// TestInstalledVersions: a version without an image in the release is refused at once, and can be
// corrected.
func TestInstalledVersions(t *testing.T) {
	set := images.Set{Registry: "registry.example.com/storeplane", Digests: images.Digests{"redis:8": "sha256:1"}}
	for _, name := range []string{"postgresql:15", "postgresql:17", "postgresql:18.1"} {
		set.Digests[name] = "sha256:" + strings.Repeat("ab", 32)
	}
	cases := map[string]struct{ reason, version, want string }{
		"Has":     {reason: "The release has its image.", version: "17"},
		"Minor":   {reason: "It has that of a minor.", version: "18.1"},
		"Patch":   {reason: "A third number means nothing.", version: "18.1.0"},
		"HasNot":  {reason: "There is no image of it.", version: "14", want: "version 14 is not in this installation, which has 15, 17, 18.1: choose one of these"},
		"NoMinor": {reason: "Nor of that minor.", version: "17.2.0", want: "version 17.2.0 is not in this installation, which has 15, 17, 18.1: choose one of these"},
		"Major":   {reason: "A minor's image has another tag than its major's.", version: "18", want: "version 18 is not in this installation, which has 15, 17, 18.1: choose one of these"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, functionstest.DatabaseCluster("{size: 1, version: '"+tc.version+"'}"), functions.WithImages(set))
			c.Reconcile()
			if _, got := c.Condition("Accepted"); got != tc.want {
				t.Errorf("%s\ngot  %q\nwant %q", tc.reason, got, tc.want)
			}
			c.Edit("17", "version")
			c.Settle()
			if status, message := c.Condition("Accepted"); status != "True" {
				t.Errorf("%s\nAccepted is %s once the version is corrected: %s", tc.reason, status, message)
			}
			c.Edit("17.2", "version")
			c.Settle()
			if status, message := c.Condition("Accepted"); status != "True" {
				t.Errorf("%s\nAccepted is %s once servers run: the registry may have more minors than the release: %s", tc.reason, status, message)
			}
		})
	}
}
