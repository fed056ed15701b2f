package mysql

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance/mysql/parameter"
)

func TestCheck(t *testing.T) {
	with := func(change func(*appsv1.DatabaseClusterSpec)) *appsv1.DatabaseClusterSpec {
		s := &appsv1.DatabaseClusterSpec{Engine: appsv1.MySQL, Version: "9.7", Size: 3}
		change(s)
		return s
	}
	parameter := func(name, value string) *appsv1.DatabaseClusterSpec {
		return with(func(s *appsv1.DatabaseClusterSpec) { s.Parameters = map[string]string{name: value} })
	}
	user := func(names ...appsv1.Identifier) *appsv1.DatabaseClusterSpec {
		return with(func(s *appsv1.DatabaseClusterSpec) {
			for _, n := range names {
				s.Users = append(s.Users, appsv1.DatabaseUser{Name: n})
			}
		})
	}
	database := func(db appsv1.Database) *appsv1.DatabaseClusterSpec {
		return with(func(s *appsv1.DatabaseClusterSpec) { s.Databases = []appsv1.Database{db} })
	}
	set := func(name string) string {
		return "parameters." + name + " cannot be set with engine mysql: it is no option of MySQL, or one that Storeplane sets. Write options in lower case, with _"
	}
	for name, tc := range map[string]struct {
		reason string
		spec   *appsv1.DatabaseClusterSpec
		want   string
	}{
		"Three":       {reason: "A group of three is usual.", spec: with(func(*appsv1.DatabaseClusterSpec) {})},
		"One":         {reason: "One server is for development.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Size = 1 })},
		"Release":     {reason: "A release may be named.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Version = "9.7.4" })},
		"Synchronous": {reason: "It is what the engine does.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Synchronous = new(true) })},
		"Restore": {reason: "A backup fills a new cluster.", spec: with(func(s *appsv1.DatabaseClusterSpec) {
			s.RestoreFrom = &appsv1.RestoreFrom{BackupRef: &appsv1.LocalBackupReference{Name: "b"}}
		})},
		"Parameter": {reason: "What tunes the server may be set.", spec: parameter("innodb_io_capacity", "2000")},
		"Users": {reason: "A user may own databases.", spec: with(func(s *appsv1.DatabaseClusterSpec) {
			s.Users, s.Databases = []appsv1.DatabaseUser{{Name: "reports"}}, []appsv1.Database{{Name: "reports", Owner: "reports"}}
		})},

		"Even":         {reason: "Four survive no more than three.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Size = 4 }), want: "size must be odd with engine mysql, is 4: a group of 4 survives the loss of no more servers than one of 3, since a majority has to be left"},
		"Nine":         {reason: "Larger groups are not tested.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Size = 9 }), want: "size must be 1, 3, 5 or 7 with engine mysql, is 9"},
		"Old":          {reason: "Another series has another election.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Version = "8.4" }), want: "version 8.4 is not supported: MySQL 9.7 is"},
		"Major":        {reason: "A series has two numbers.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Version = "9" }), want: `version "9" is not like 9.7 or 9.7.4`},
		"Asynchronous": {reason: "There is no such group.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Synchronous = new(false) }), want: "synchronous cannot be false with engine mysql: a majority of the servers has every write before it is acknowledged"},
		"Alone":        {reason: "One server has no other to wait for.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.Size, s.Synchronous = 1, new(true) }), want: "synchronous needs a size of at least 3 with engine mysql, is 1"},
		"Strict":       {reason: "A group shrinks.", spec: with(func(s *appsv1.DatabaseClusterSpec) { s.SynchronousMode = appsv1.Strict }), want: "synchronousMode strict is not available with engine mysql: a group continues as long as a majority of its servers is left: use quorum"},
		"RestoreVolume": {reason: "No server can mount it.", spec: with(func(s *appsv1.DatabaseClusterSpec) {
			s.RestoreFrom = &appsv1.RestoreFrom{Destination: &appsv1.BackupDestination{Type: "volume", Bucket: "old"}, Name: "b"}
		}), want: "restoreFrom.destination.type volume is not available with engine mysql: create the claim again with a physical backup in an object store, or without restoreFrom to restore a dump with a Restore"},
		"Transactions": {reason: "It is one transaction.", spec: with(func(s *appsv1.DatabaseClusterSpec) {
			s.RestoreFrom = &appsv1.RestoreFrom{BackupRef: &appsv1.LocalBackupReference{Name: "b"}, BeforeTransaction: "3e11fa47-71ca-11e1-9e33-c80aa9429562:9999999999999999999"}
		}), want: "restoreFrom.beforeTransaction 3e11fa47-71ca-11e1-9e33-c80aa9429562:9999999999999999999 is not the GTID of one transaction"},
		"Expiry": {reason: "What is not archived by then is lost.", spec: with(func(s *appsv1.DatabaseClusterSpec) {
			s.Parameters = map[string]string{"binlog_expire_logs_seconds": "60"}
			s.Backup = &appsv1.DatabaseBackup{Method: "physical"}
		}), want: "parameters.binlog_expire_logs_seconds must be at least 86400 with backup.method physical, is 60: binary logs are lost that are not archived by then"},
		"Extensions":       {reason: "MySQL has none.", spec: database(appsv1.Database{Name: "reports", Extensions: []string{"postgis"}}), want: "databases.reports.extensions is not available with engine mysql: leave it out"},
		"Connections":      {reason: "Of fewer connections too few are left for clients.", spec: parameter("max_connections", "20"), want: "parameters.max_connections must be at least 40 with engine mysql, is 20: 20 of them are kept from any one user, for the servers themselves, backups and metrics"},
		"ConnectionsLeast": {reason: "With these there are some.", spec: parameter("max_connections", "40")},
		"UserConnections":  {reason: "No single user can have all connections.", spec: parameter("max_user_connections", "132"), want: "parameters.max_user_connections must be from 1 to 131 with engine mysql, is 132: 20 of max_connections are kept from any one user, for the servers themselves, backups and metrics"},
		"UserUnlimited":    {reason: "0 is no limit.", spec: parameter("max_user_connections", "0"), want: "parameters.max_user_connections must be from 1 to 131 with engine mysql, is 0: 20 of max_connections are kept from any one user, for the servers themselves, backups and metrics"},
		"UserFew":          {reason: "Several users share a cluster.", spec: parameter("max_user_connections", "131")},
		"Schema":           {reason: "Members know by it what they have received.", spec: parameter("performance_schema", "Off"), want: "parameters.performance_schema must be ON with engine mysql and a size of more than 1, is \"Off\": members of a group need it"},
		"SchemaNo":         {reason: "MySQL takes it for off.", spec: parameter("performance_schema", "no"), want: "parameters.performance_schema must be ON with engine mysql and a size of more than 1, is \"no\": members of a group need it"},
		"SchemaOn":         {reason: "It is on anyway.", spec: parameter("performance_schema", "ON")},
		"SchemaAlone": {reason: "One server has no group.", spec: with(func(s *appsv1.DatabaseClusterSpec) {
			s.Size, s.Parameters = 1, map[string]string{"performance_schema": "OFF"}
		})},
		"OwnDatabase":   {reason: "It is the server's.", spec: database(appsv1.Database{Name: "mysql"}), want: "databases has mysql, which every cluster has: choose another"},
		"NoOwner":       {reason: "An owner is a user.", spec: database(appsv1.Database{Name: "reports", Owner: "missing"}), want: "databases.reports.owner is missing, which is not in users: add it"},
		"OwnUser":       {reason: "It is the servers'.", spec: user("storeplane_replication"), want: "users has storeplane_replication, which is a reserved user name: choose another"},
		"BackupsUser":   {reason: "It is the backups'.", spec: user("storeplane_backup"), want: "users has storeplane_backup, which is a reserved user name: choose another"},
		"Twice":         {reason: "A user is one.", spec: user("a", "a"), want: "users has a twice"},
		"LongUser":      {reason: "MySQL would refuse it.", spec: user(appsv1.Identifier(strings.Repeat("a", 33))), want: "users has " + strings.Repeat("a", 33) + ": with engine mysql a name has at most 32 characters"},
		"Group":         {reason: "The group is not the claim's to configure.", spec: parameter("group_replication_consistency", "EVENTUAL"), want: set("group_replication_consistency")},
		"Durability":    {reason: "Nor is what is acknowledged.", spec: parameter("sync_binlog", "0"), want: set("sync_binlog")},
		"Abbreviated":   {reason: "MySQL takes an abbreviation of an option for it.", spec: parameter("sync_binl", "0"), want: set("sync_binl")},
		"Prefixed":      {reason: "Or one with a prefix.", spec: parameter("loose_sync_binlog", "0"), want: set("loose_sync_binlog")},
		"Dashes":        {reason: "Or with dashes.", spec: parameter("max-connections", "10"), want: set("max-connections")},
		"Program":       {reason: "A file of statements is run as the superuser.", spec: parameter("init_file", "/tmp/x"), want: set("init_file")},
		"TwoLines":      {reason: "A line more is an option more.", spec: parameter("sql_mode", "ANSI\nskip-grant-tables"), want: "parameters.sql_mode has a quotation mark or a control character, which no value of an option may have"},
		"QuotationMark": {reason: "It would end the value.", spec: parameter("sql_mode", `ANSI" #`), want: "parameters.sql_mode has a quotation mark or a control character, which no value of an option may have"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := (Engine{}).Check(tc.spec); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCheck(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckChange(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		want    appsv1.Version
		servers engine.Running
		refused string
	}{
		"First":   {reason: "There is no data yet.", want: "9.7"},
		"Newer":   {reason: "A release of the series reads the data of another.", want: "9.7.5", servers: engine.Running{Ran: true, Rolled: "9.7.4", Reported: []string{"9.7.4"}}},
		"Same":    {reason: "What was rolled out stays.", want: "9.7", servers: engine.Running{Ran: true, Rolled: "9.7", Reported: []string{"9.7.4"}}},
		"Older":   {reason: "An older server does not start with newer data.", want: "9.7.3", servers: engine.Running{Ran: true, Rolled: "9.7.4", Reported: []string{"9.7.4"}}, refused: "version may not go back: 9.7.4 → 9.7.3"},
		"Strange": {reason: "A version that is not known refuses nothing.", want: "9.7.3", servers: engine.Running{Ran: true, Reported: []string{"x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := (Engine{}).CheckChange(tc.want, tc.servers); err != nil {
				got = err.Error()
			}
			if got != tc.refused {
				t.Errorf("%s\nCheckChange(%s): want %q, got %q", tc.reason, tc.want, tc.refused, got)
			}
		})
	}
}

func claimed(size int32, memory int64, parameters map[string]string) cluster {
	spec := &appsv1.DatabaseClusterSpec{Size: size}
	spec.Parameters = parameters
	return cluster{&engine.Cluster{
		Scope: build.Scope{Claim: "orders", Namespace: "team"}, Spec: spec, Memory: memory,
		OwnAuthority: true, TLSRequired: true, Authority: "CA", Users: map[string]string{"app": "p+/?"},
	}}
}

func TestBufferPool(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		size   int32
		memory int64
		want   int64
	}{
		"Development": {reason: "The default leaves a little.", size: 1, memory: defaultMemory, want: 230 * mebibyte},
		"Production":  {reason: "Most of it is the pool's.", size: 3, memory: 2048 * mebibyte, want: 844 * mebibyte},
		"Little":      {reason: "It has a least size.", size: 3, memory: 256 * mebibyte, want: 64 * mebibyte},
		"Unlimited":   {reason: "Without a limit nothing is known of the machine.", size: 1, want: 64 * mebibyte},
	} {
		t.Run(name, func(t *testing.T) {
			if got := claimed(tc.size, tc.memory, nil).bufferPool(); got != tc.want {
				t.Errorf("%s\nbufferPool(): want %d MiB, got %d", tc.reason, tc.want/mebibyte, got/mebibyte)
			}
		})
	}
}

// TestPerformanceSchema: a single server for development has none unless the claim asks for it. Members of a group need it.
// These have a smaller one than MySQL's default, unless the claim has another size.
func TestPerformanceSchema(t *testing.T) {
	modest := []string{
		`performance_schema_digests_size="2000"`, `performance_schema_error_size="0"`,
		`performance_schema_events_stages_history_long_size="1000"`, `performance_schema_events_statements_history_long_size="1000"`,
		`performance_schema_events_transactions_history_long_size="1000"`, `performance_schema_events_waits_history_long_size="1000"`,
	}
	for name, tc := range map[string]struct {
		size        int32
		environment appsv1.Environment
		parameters  map[string]string
		want        []string
	}{
		"Development": {size: 1, want: []string{`performance_schema="OFF"`}},
		"Asked":       {size: 1, parameters: map[string]string{"performance_schema": "ON"}, want: append(slices.Clone(modest), `performance_schema="ON"`)},
		"True":        {size: 1, parameters: map[string]string{"performance_schema": "true"}, want: append(slices.Clone(modest), `performance_schema="true"`)},
		"Not":         {size: 1, parameters: map[string]string{"performance_schema": "OFF"}, want: []string{`performance_schema="OFF"`, `performance_schema="OFF"`}},
		"Group":       {size: 3, want: modest},
		"Staging":     {size: 1, environment: appsv1.Staging, want: modest},
		"Digests":     {size: 3, parameters: map[string]string{"performance_schema_digests_size": "10000"}, want: append(slices.Clone(modest), `performance_schema_digests_size="10000"`)},
	} {
		t.Run(name, func(t *testing.T) {
			d := claimed(tc.size, 0, tc.parameters)
			d.Spec.Environment = tc.environment
			var got []string
			for line := range strings.Lines(d.options()) {
				if strings.HasPrefix(line, "performance") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("options: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestOptions: whatever the values of parameters that Check accepts, the file has the options that are
// meant, in one line each. Others are refused for a quotation mark or a control character alone.
func TestOptions(t *testing.T) {
	plain, others := options(claimed(1, 0, nil).options()), options(claimed(3, 0, nil).options())
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.OneOf(rapid.StringMatching(`[ !#-~äß€]*`), rapid.String())
		params := rapid.MapOf(rapid.SampledFrom(parameter.All()), values).Draw(t, "parameters")
		if err := validateParameters(params); err != nil {
			if !strings.ContainsFunc(strings.Join(slices.Collect(maps.Values(params)), ""), func(r rune) bool { return r == '"' || r < ' ' || r == 0x7f }) {
				t.Errorf("validateParameters(%q): %v", params, err)
			}
			return
		}
		got, own := options(claimed(1, 0, params).options()), plain
		if slices.Contains(on, strings.ToLower(params["performance_schema"])) {
			own = others
		}
		want := slices.Concat(own, slices.DeleteFunc(slices.Sorted(maps.Keys(params)), func(k string) bool { return !parameter.NeedsStart(k) }))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("options: -want, +got:\n%s", diff)
		}
	})
}

// options returns the names of the options in a file, in order.
func options(text string) []string {
	var names []string
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if name, _, ok := strings.Cut(s.Text(), "="); ok {
			names = append(names, name)
		}
	}
	return names
}

// TestVariables: what servers set while they run is what the claim asks for, or else what it would be without
// the claim's parameters. No change of it takes another pod.
func TestVariables(t *testing.T) {
	const pool = 64 * mebibyte
	own := map[string]string{
		"innodb_log_buffer_size": "16777216", "innodb_redo_log_capacity": strconv.Itoa(pool), "log_error_verbosity": "2",
		"max_binlog_size": "134217728", "max_user_connections": "131",
	}
	for name, tc := range map[string]struct {
		reason     string
		size       int32
		parameters map[string]string
		change     map[string]string
		restarts   bool
	}{
		"None":        {reason: "There are those of the base.", size: 3},
		"Development": {reason: "The log buffer is one of them.", size: 1, change: map[string]string{"innodb_log_buffer_size": "8388608"}},
		"Set": {
			reason: "The claim's come last, and one depends on another.", size: 3,
			parameters: map[string]string{"max_connections": "200", "max_binlog_size": "64M", "sort_buffer_size": "1M"},
			change:     map[string]string{"max_connections": "200", "max_user_connections": "180", "max_binlog_size": "64M", "sort_buffer_size": "1M"},
		},
		"Start": {reason: "What needs a start is in the file.", size: 3, parameters: map[string]string{"thread_stack": "1M"}, restarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := claimed(tc.size, 0, tc.parameters)
			want := maps.Clone(own)
			maps.Copy(want, tc.change)
			if diff := cmp.Diff(want, d.variables()); diff != "" {
				t.Errorf("%s\nvariables(): -want, +got:\n%s", tc.reason, diff)
			}
			before, after := (Engine{}).Configuration(claimed(tc.size, 0, nil).Cluster), (Engine{}).Configuration(d.Cluster)
			if got := before.Restarts != after.Restarts; got != tc.restarts {
				t.Errorf("%s\nanother pod: want %t, got %t", tc.reason, tc.restarts, got)
			}
		})
	}
}

// TestConnections: no single user can have all connections, since servers connect in the same way.
func TestConnections(t *testing.T) {
	for most, want := range map[string]int{"": 131, "200": 180, "40": 20, "10": 1, "x": 131, "200000": 99980} {
		if got := mostOfOne(map[string]string{"max_connections": most}); got != want {
			t.Errorf("max_connections %q: want %d for one user, got %d", most, want, got)
		}
	}
}

func TestConnection(t *testing.T) {
	d := claimed(3, 0, nil)
	to := engine.Address{User: "app", Database: "app", Host: "orders-primary.team.svc"}
	got := (Engine{}).Connection(d.Cluster, to)
	want := map[string]string{
		"username": "app", "password": "p+/?", "host": "orders-primary.team.svc", "port": "3306", "dbname": "app", "ca.crt": "CA",
		"uri":          "mysql://app:p+%2F%3F@orders-primary.team.svc:3306/app?ssl-mode=REQUIRED",
		"jdbc-uri":     "jdbc:mysql://orders-primary.team.svc:3306/app?user=app&password=p%2B%2F%3F&sslMode=REQUIRED",
		"verified-uri": "mysql://app:p+%2F%3F@orders-primary.team.svc:3306/app?ssl-mode=VERIFY_IDENTITY&ssl-ca=/etc/storeplane/orders/ca.crt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Connection(): -want, +got:\n%s", diff)
	}
	d.Users["app"] = "other"
	next := (Engine{}).Connection(d.Cluster, to)
	for key, value := range engine.WithPassword(got, "app", "p+/?", "other") {
		if diff := cmp.Diff(next[key], value); diff != "" {
			t.Errorf("%s with another password: -want, +got:\n%s", key, diff)
		}
	}
	d.TLSRequired, d.OwnAuthority = false, false
	if got := fmt.Sprint(d.sslMode(), " ", d.verifyMode()); got != "PREFERRED VERIFY_CA" {
		t.Errorf("of a certificate that is brought, with TLS as one likes: got %s", got)
	}
}
