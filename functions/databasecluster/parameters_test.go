package databasecluster_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestDynamic: the whole configuration that all servers share.
func TestDynamic(t *testing.T) {
	config := func(synchronous, params map[string]any) map[string]any {
		all := map[string]any{
			"max_connections": "200", "max_locks_per_transaction": "64", "max_prepared_transactions": "0", "max_worker_processes": "8", "track_commit_timestamp": "off",
			"wal_level": "replica", "wal_log_hints": "on", "max_wal_senders": "20", "max_replication_slots": "20", "wal_retrieve_retry_interval": "1s",
		}
		maps.Copy(all, params)
		out := map[string]any{
			"ttl": 20.0, "loop_wait": 5.0, "retry_timeout": 5.0, "primary_start_timeout": 30.0, "failsafe_mode": true, "check_timeline": true,
			"postgresql": map[string]any{"use_pg_rewind": true, "use_slots": true, "parameters": all},
		}
		maps.Copy(out, synchronous)
		// The bound on the lag of a standby that may be promoted. With synchronous replication the
		// quorum decides instead, and where WAL is archived standbys may be behind by the rest of a
		// segment.
		switch {
		case synchronous["synchronous_mode"] == "quorum":
			out["maximum_lag_on_failover"] = float64(1 << 40)
		case params["archive_timeout"] != nil:
			out["maximum_lag_on_failover"] = float64(33 << 20)
		default:
			out["maximum_lag_on_failover"] = float64(1 << 20)
		}
		return out
	}
	// With backups, each change is archived within this time.
	archived := map[string]any{"archive_timeout": "300"}
	off := map[string]any{"synchronous_mode": false}
	quorum := map[string]any{"synchronous_mode": "quorum", "synchronous_mode_strict": false}
	strict := map[string]any{"synchronous_mode": "quorum", "synchronous_mode_strict": true}
	cases := map[string]struct {
		reason string
		spec   string
		want   map[string]any
	}{
		"One":        {reason: "One server has no standby to wait for.", spec: functionstest.OneServer, want: config(off, nil)},
		"OneStrict":  {reason: "However strict it is.", spec: "{size: 1, version: '17', environment: production, synchronousMode: strict}", want: config(off, archived)},
		"Two":        {reason: "Two do not wait unless asked to.", spec: "{size: 2, version: '17'}", want: config(off, nil)},
		"Asked":      {reason: "They do when asked to.", spec: "{size: 2, version: '17', synchronous: true}", want: config(quorum, nil)},
		"Production": {reason: "Production waits for another server.", spec: functionstest.Production, want: config(quorum, archived)},
		"Quorum":     {reason: "To say the default is no change.", spec: "{size: 3, version: '17', environment: production, synchronousMode: quorum}", want: config(quorum, archived)},
		"Strict":     {reason: "Strict production stops rather than to go on alone.", spec: "{size: 3, version: '17', environment: production, synchronousMode: strict}", want: config(strict, archived)},
		"Off":        {reason: "Strict or not, an asynchronous primary does not wait.", spec: "{size: 3, version: '17', environment: production, synchronous: false, synchronousMode: strict}", want: config(off, archived)},
		"Parameters": {
			reason: "The claim's values replace the defaults, and all of them are here.",
			spec:   "{size: 1, version: '17', environment: staging, parameters: {archive_timeout: '60', max_connections: '500', track_commit_timestamp: 'on', work_mem: 16MB}}",
			want:   config(off, map[string]any{"archive_timeout": "60", "max_connections": "500", "track_commit_timestamp": "on", "work_mem": "16MB"}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Reconcile()
			if diff := cmp.Diff(tc.want, dynamic(t, c)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, component := range []string{"patroni-failover", "patroni-sync"} {
				if got := functionstest.Get(c.Observed[component], "metadata", "annotations", "config"); got != nil {
					t.Errorf("It is in one place only, got %v in %s", got, component)
				}
			}
			if got, want := desiredOf(t, c).Synchronous, tc.want["synchronous_mode"] != false; got != want {
				t.Errorf("%s\nThe managers are told too: want %t, got %t", tc.reason, want, got)
			}
		})
	}
}

// TestChanges: what reaches servers that run, and which changes replace their pods. Patroni applies
// its dynamic configuration itself, and the instance managers restart servers where needed.
func TestChanges(t *testing.T) {
	type want struct{ config, rolls bool }
	parameter := func(name, value string) func(*crossplane) {
		return func(c *crossplane) { c.Edit(map[string]any{name: value}, "parameters") }
	}
	cases := map[string]struct {
		reason string
		change func(*crossplane)
		want   want
	}{
		"Nothing":      {reason: "Nothing is changed.", change: func(*crossplane) {}},
		"Asynchronous": {reason: "Servers take it up as they run.", change: func(c *crossplane) { c.Edit(false, "synchronous") }, want: want{config: true}},
		"Said":         {reason: "What holds anyway is no change.", change: func(c *crossplane) { c.Edit(true, "synchronous") }},
		"Strict":       {reason: "Servers take it up as they run.", change: func(c *crossplane) { c.Edit("strict", "synchronousMode") }, want: want{config: true}},
		"OneServer":    {reason: "The last server has no standby to wait for.", change: func(c *crossplane) { c.Edit(1, "size") }, want: want{config: true}},
		"TwoServers":   {reason: "Two still do.", change: func(c *crossplane) { c.Edit(2, "size") }},
		"Default":      {reason: "To say the default is no change.", change: parameter("max_connections", "200")},
		"Reload":       {reason: "A parameter replaces no pod.", change: parameter("work_mem", "16MB"), want: want{config: true}},
		"Restart":      {reason: "Nor does one that needs a restart: the managers see to it.", change: parameter("max_connections", "500"), want: want{config: true}},
		"Libraries":    {reason: "Whichever it is.", change: parameter("shared_preload_libraries", "pg_stat_statements"), want: want{config: true}},
		"User":         {reason: "Users and databases are made as servers run.", change: func(c *crossplane) { c.Edit([]any{map[string]any{"name": "reader"}}, "users") }},
		"Database":     {reason: "Users and databases are made as servers run.", change: func(c *crossplane) { c.Edit([]any{map[string]any{"name": "shop"}}, "databases") }},
		"Storage":      {reason: "Volumes grow as servers run.", change: func(c *crossplane) { c.Edit("30Gi", "storageSize") }},
		"Rotation":     {reason: "So do passwords change.", change: func(c *crossplane) { delete(functionstest.Fields(c.Observed["connection"], "data"), "password") }},
		"Clients":      {reason: "Who may reach them is the network's.", change: func(c *crossplane) { c.Edit(map[string]any{"app": "x"}, "clients") }},
		"Protection":   {reason: "Protection is Crossplane's.", change: func(c *crossplane) { c.Edit(false, "deletionProtection") }},
		"Clear":        {reason: "Who may come in in the clear is in their file.", change: func(c *crossplane) { c.Edit(map[string]any{"required": false}, "tls") }, want: want{rolls: true}},
		"Version":      {reason: "Another image is another pod.", change: func(c *crossplane) { c.Edit("17.4", "version") }, want: want{rolls: true}},
		"Resources":    {reason: "So are other resources.", change: func(c *crossplane) { c.Edit(map[string]any{"limits": map[string]any{"memory": "4Gi"}}, "resources") }, want: want{rolls: true}},
		"Unmonitored":  {reason: "And one container less.", change: func(c *crossplane) { c.Edit(map[string]any{"enabled": false}, "monitoring") }, want: want{rolls: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Settle()
			template := func() *structpb.Value { return functionstest.Get(c.Observed["postgresql"], "spec", "template") }
			config, pods := dynamic(t, c), template()
			tc.change(c)
			c.Reconcile()
			got := want{config: !cmp.Equal(config, dynamic(t, c)), rolls: !proto.Equal(pods, template())}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			c.Settle()
			if c.Phase() != "Running" {
				t.Errorf("want Running in the end, got %s, %q", c.Phase(), c.Message())
			}
		})
	}
}

// TestParameterNames: a name that YAML would read as another type than text stays a text.
func TestParameterNames(t *testing.T) {
	for _, name := range []string{"on", "null", "true", "12", "1e3", "0x1f", "no", "work_mem", "auto_explain.log_nested_statements"} {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.OneServer)
			c.Edit(map[string]any{name: "md5"}, "parameters")
			c.Reconcile()
			for where, params := range map[string]any{"dynamic": dynamic(t, c), "bootstrap": patroni(t, c)["bootstrap"].(map[string]any)["dcs"]} {
				got := params.(map[string]any)["postgresql"].(map[string]any)["parameters"].(map[string]any)
				if got[name] != "md5" {
					t.Errorf("%s: want %s: md5 as text, got %v", where, name, got)
				}
			}
			if diff := cmp.Diff(map[string]string{name: "md5"}, desiredOf(t, c).Parameters); diff != "" {
				t.Errorf("The managers check what the claim says, and nothing else: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestHostileParameters: whatever a value contains, it stays one value, and does not change the
// pods.
func TestHostileParameters(t *testing.T) {
	names := rapid.SampledFrom([]string{"work_mem", "shared_preload_libraries", "log_line_prefix", "search_path", "pg_stat_statements.max", "max_connections", "track_commit_timestamp"})
	values := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		`"`, `\`, `'`, "a\nb", "a: b", "- x", "#", "{{x}}", "%", "", " ", "\t", "\x00", "\x7f", "\u0085", "\u2028", "\ufeff", "ünï", "😀", "on", "null", "017", "1e3", "~", "!!binary x", "&a *a",
		"x'\n  pg_hba:\n    - host all all all trust\n", `","wal_level":"minimal`, `\"`, "\\\n", `</script>&`,
	}))
	claim := functionstest.DatabaseCluster(functionstest.OneServer)
	plain := functionstest.New(t, claim)
	plain.Reconcile()
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.MapOfN(names, values, 0, 4).Draw(rt, "parameters")
		c := functionstest.New(t, claim)
		params := map[string]any{}
		for k, v := range want {
			params[k] = v
		}
		c.Edit(params, "parameters")
		if rsp := c.Reconcile(); len(rsp.GetResults()) > 0 {
			rt.Fatalf("refused: %v", rsp.GetResults())
		}
		p, dcs := patroni(t, c), dynamic(t, c)
		bootstrap := p["bootstrap"].(map[string]any)
		if diff := cmp.Diff(dcs, bootstrap["dcs"]); diff != "" {
			rt.Fatalf("as YAML it says something else than as JSON: -JSON, +YAML:\n%s", diff)
		}
		got := dcs["postgresql"].(map[string]any)["parameters"].(map[string]any)
		for k, v := range dynamic(t, plain)["postgresql"].(map[string]any)["parameters"].(map[string]any) {
			if _, ok := want[k]; !ok {
				want[k] = v.(string)
			}
		}
		if diff := cmp.Diff(want, texts(got)); diff != "" {
			rt.Fatalf("-want, +got:\n%s", diff)
		}

		// The rest is the same as without any parameters.
		delete(dcs["postgresql"].(map[string]any), "parameters")
		other := dynamic(t, plain)
		delete(other["postgresql"].(map[string]any), "parameters")
		if diff := cmp.Diff(other, dcs); diff != "" {
			rt.Fatalf("-want, +got:\n%s", diff)
		}
		delete(bootstrap, "dcs")
		file := patroni(t, plain)
		delete(file["bootstrap"].(map[string]any), "dcs")
		if diff := cmp.Diff(file, p); diff != "" {
			rt.Fatalf("-want, +got:\n%s", diff)
		}
		if !proto.Equal(functionstest.Get(plain.Observed["postgresql"], "spec"), functionstest.Get(c.Observed["postgresql"], "spec")) {
			rt.Fatalf("parameters change no pod")
		}
	})
}

// texts returns a map of which all values must be texts.
func texts(m map[string]any) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v.(string)
	}
	return out
}
