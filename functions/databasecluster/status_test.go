package databasecluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestReady: a claim is not ready when its servers are up, but when a primary was elected and has
// created the databases and users.
func TestReady(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Reconcile()
	c.Reconcile() // The RoleBinding is added, and the status left as it is.
	c.Heal("postgresql")
	c.Reconcile()
	if want := "Waiting for postgresql (No primary has been elected yet)"; c.Phase() != "Creating" || c.Message() != want {
		t.Errorf("want Creating until a primary is elected, got %s, %q", c.Phase(), c.Message())
	}
	c.Report("cluster.json", `{"primary":"orders-postgresql-0","system":"7"}`)
	c.Reconcile()
	if want := "Waiting for postgresql (Reconciling databases, users and passwords)"; c.Phase() != "Creating" || c.Message() != want {
		t.Errorf("want Creating until it is what the claim says, got %s, %q", c.Phase(), c.Message())
	}
	c.Heal()
	c.ReportCluster(func(r *instance.Cluster) { r.Timeline = 4 })
	c.Reconcile() // The backups' CronJobs are added, and the status left as it is.
	if want := "Waiting for postgresql (Reconciling databases, users and passwords)"; c.Phase() != "Creating" || c.Message() != want {
		t.Errorf("want Creating until backups are scheduled, got %s, %q", c.Phase(), c.Message())
	}
	c.Reconcile()
	status := functionstest.Get(c.Claim, "status").GetStructValue()
	delete(status.Fields, "conditions")
	delete(status.Fields, "components")
	delete(status.Fields, "inputs")
	delete(status.Fields, "release")
	want := map[string]any{
		"phase": "Running", "readyGeneration": 1.0, "observedGeneration": 1.0, "endpoint": "orders-primary.team.svc:5432", "readOnlyEndpoint": "orders-replica.team.svc:5432",
		"connectionSecret": "orders-connection", "primary": "orders-postgresql-0", "version": "17.2", "readyReplicas": 3.0, "timeline": 4.0,
	}
	if diff := cmp.Diff(want, status.AsMap()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestPhases(t *testing.T) {
	c := simulate(t, functionstest.Production)
	step := func(what, want string) {
		t.Helper()
		c.Reconcile()
		if c.Phase() != want {
			t.Errorf("%s: want %s, got %s (%s)", what, want, c.Phase(), c.Message())
		}
	}
	step("Nothing exists, and the status is left to the next pass", "")
	step("The servers start", "Creating")
	c.Heal("postgresql")
	step("They are up", "Creating")
	c.Heal()
	step("They are what the claim says", "Creating")
	step("Backups are scheduled", "Running")

	const three = `{observedGeneration: %d, replicas: 3, readyReplicas: %d, currentReplicas: 3, updatedReplicas: %d, currentRevision: a, updateRevision: %s}`
	c.SetStatus("postgresql", fmt.Sprintf(three, 1, 2, 3, "a"))
	step("A server is down", "Degraded")
	c.Heal()
	step("It is back", "Running")

	c.Edit(5, "size")
	step("More servers are asked for", "Scaling")
	step("And are on their way", "Scaling")
	c.Heal("postgresql")
	step("They are up and have told nothing yet", "Scaling")
	for i := range int32(5) {
		c.Report(instance.MemberKey(instance.Pod("orders-postgresql", i)), `{"capacity":"20Gi"}`)
	}
	step("PostgreSQL has run on none of them yet", "Scaling")
	c.Heal()
	step("They are there", "Running")

	c.Edit(3, "size")
	step("Fewer are asked for", "Scaling")
	c.Heal("instances")
	step("The managers have read it", "Scaling")
	step("Two are on their way out", "Scaling")
	c.Heal()
	step("They are gone", "Running")

	c.Edit("17.4", "version")
	step("Another minor is asked for", "Upgrading")
	generation := int(functionstest.Get(c.Observed["postgresql"], "metadata", "generation").GetNumberValue())
	c.SetStatus("postgresql", fmt.Sprintf(three, generation, 2, 1, "b"))
	step("It rolls", "Upgrading")
	c.Heal()
	step("It is there", "Running")

	c.Edit(map[string]any{"work_mem": "16MB"}, "parameters")
	step("A parameter is changed", "Upgrading")
	c.Heal()
	step("It is there", "Running")

	c.Edit("30Gi", "storageSize")
	step("More storage is asked for", "Upgrading")
	c.Heal()
	step("It is there", "Running")

	c.Edit(true, "hibernated")
	step("Sleep is asked for", "Scaling")
	step("The servers go", "Scaling")
	c.Heal()
	step("They are gone", "Hibernated")
	step("They stay gone", "Hibernated")

	c.Edit("17.5", "version")
	step("Another minor is asked for in its sleep", "Upgrading")
	c.Heal()
	step("It is there", "Hibernated")

	c.Edit(false, "hibernated")
	step("It is woken", "Scaling")
	step("The servers start", "Scaling")
	c.Heal()
	step("They are there", "Running")
}

func TestReplicationHealthy(t *testing.T) {
	const two, three = "{size: 2, version: '17'}", "{size: 3, version: '17', environment: production}"
	standby := func(i int, change func(*instance.Standby)) func(*crossplane) {
		return func(c *crossplane) { c.ReportCluster(func(r *instance.Cluster) { change(&r.Standbys[i]) }) }
	}
	unsynchronous := func(c *crossplane) {
		c.ReportCluster(func(r *instance.Cluster) {
			for i := range r.Standbys {
				r.Standbys[i].Synchronous = false
			}
		})
	}
	type want struct{ verdict, phase, message string }
	degraded := func(reason, message string) want { return want{"False " + reason + " " + message, "Degraded", message} }
	notReady := func(verdict, message string) want { return want{verdict, "Degraded", message} }
	cases := map[string]struct {
		reason string
		spec   string
		change func(*crossplane)
		want   want
	}{
		"Healthy":      {reason: "All follow, and some are in step.", spec: three, want: want{"True Healthy", "Running", ""}},
		"SingleServer": {reason: "One server has no standby that could follow.", spec: functionstest.OneServer, want: want{"True SingleServer", "Running", ""}},
		"Hibernated":   {reason: "A hibernated server follows no primary, and is not to.", spec: "{size: 3, version: '17', hibernated: true}", want: want{"True Hibernated", "Hibernated", ""}},
		"Asynchronous": {reason: "A standby that was not asked to be synchronous need not be.", spec: two, change: unsynchronous, want: want{"True Healthy", "Running", ""}},
		"OneOfTwo":     {reason: "One in step is enough.", spec: three, change: standby(0, func(s *instance.Standby) { s.Synchronous = false }), want: want{"True Healthy", "Running", ""}},
		"NoPrimary": {
			reason: "No server takes writes.", spec: three, change: func(c *crossplane) { c.ReportCluster(func(r *instance.Cluster) { r.Primary = "" }) },
			want: notReady("False NoPrimary No primary takes writes", "Waiting for postgresql (No primary has been elected yet)"),
		},
		"NoneReady": {
			reason: "The last report does not count when no server is up.", spec: three,
			change: func(c *crossplane) {
				c.SetStatus("postgresql", "{observedGeneration: 1, replicas: 3, updatedReplicas: 3}")
			},
			want: notReady("False NoPrimary No primary takes writes", "Waiting for postgresql (Not all pods are ready)"),
		},
		"Leaderless": {
			reason: "A standby is ready that may not lead, and the last report is that of a primary that is lost.", spec: three,
			change: func(c *crossplane) {
				c.SetStatus("postgresql", "{observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 1}")
				c.ReportMember(1, func(m *instance.Member) { m.Leaderless = "orders-postgresql-0/1" })
			},
			want: notReady("False NoPrimary No primary takes writes", "Waiting for postgresql (Not all pods are ready)"),
		},
		"Led": {
			reason: "A report from before the primary led means nothing.", spec: three,
			change: func(c *crossplane) {
				c.ReportCluster(func(r *instance.Cluster) { r.Timeline = 2 })
				c.ReportMember(1, func(m *instance.Member) { m.Leaderless = "orders-postgresql-0/1" })
			},
			want: want{"True Healthy", "Running", ""},
		},
		"NoneInStep": {
			reason: "Writes go on, on one server only.", spec: three, change: unsynchronous,
			want: degraded("NoSynchronousStandby", "No synchronous standby: writes are on one server only"),
		},
		"NoneInStepStrict": {
			reason: "Writes wait.", spec: "{size: 3, version: '17', environment: production, synchronousMode: strict}", change: unsynchronous,
			want: degraded("NoSynchronousStandby", "No synchronous standby: writes are blocked"),
		},
		"NotStreaming": {
			reason: "A server is named that does not follow.", spec: three, change: standby(1, func(s *instance.Standby) { s.Streaming = false }),
			want: degraded("StandbyMissing", "Not following the primary: orders-postgresql-2"),
		},
		"NotThere": {
			reason: "So is one of which nothing is known.", spec: three,
			change: func(c *crossplane) { c.ReportCluster(func(r *instance.Cluster) { r.Standbys = r.Standbys[1:] }) },
			want:   degraded("StandbyMissing", "Not following the primary: orders-postgresql-1"),
		},
		"NoneThere": {
			reason: "All of them are named.", spec: two,
			change: func(c *crossplane) {
				c.ReportCluster(func(r *instance.Cluster) { r.Primary, r.Standbys = "orders-postgresql-1", nil })
			},
			want: degraded("StandbyMissing", "Not following the primary: orders-postgresql-0"),
		},
		"Lagging": {
			reason: "A server is named that is behind.", spec: three, change: standby(0, func(s *instance.Standby) { s.Lagging = true }),
			want: degraded("Lagging", "Far behind the primary: orders-postgresql-1"),
		},
		"MissingAndLagging": {
			reason: "Who does not follow comes before who is behind.", spec: three,
			change: func(c *crossplane) {
				standby(0, func(s *instance.Standby) { s.Lagging = true })(c)
				standby(1, func(s *instance.Standby) { s.Streaming = false })(c)
			},
			want: degraded("StandbyMissing", "Not following the primary: orders-postgresql-2"),
		},
		"Stranger": {
			reason: "A standby that is no server of the claim does not count.", spec: three,
			change: func(c *crossplane) {
				c.ReportCluster(func(r *instance.Cluster) {
					r.Standbys = append(r.Standbys, instance.Standby{Name: "orders-postgresql-7", Lagging: true})
				})
			},
			want: want{"True Healthy", "Running", ""},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settle()
			if tc.change != nil {
				tc.change(c)
			}
			rsp := c.Reconcile()
			if got := (want{c.ConditionLine("ReplicationHealthy"), c.Phase(), c.Message()}); got != tc.want {
				t.Errorf("%s\nwant %+v\ngot  %+v", tc.reason, tc.want, got)
			}
			// A claim with a primary is ready: Ready does not wait for standbys.
			if ready := len(functionstest.Waiting(rsp)) == 0; ready == strings.Contains(c.ConditionLine("ReplicationHealthy"), " NoPrimary ") {
				t.Errorf("%s\ngot ready %t, waiting for %v", tc.reason, ready, functionstest.Waiting(rsp))
			}
		})
	}
}

func TestStorageHealthy(t *testing.T) {
	member := func(ordinal int32, change func(*instance.Member)) func(*crossplane) {
		return func(c *crossplane) { c.ReportMember(ordinal, change) }
	}
	both := func(changes ...func(*crossplane)) func(*crossplane) {
		return func(c *crossplane) {
			for _, change := range changes {
				change(c)
			}
		}
	}
	filled := func(ordinal int32, percent int) func(*crossplane) {
		return member(ordinal, func(m *instance.Member) { m.Filling = percent })
	}
	const no = "cannot grow: its StorageClass does not allow it"
	stuck := member(1, func(m *instance.Member) { m.Volume = no })
	type want struct{ verdict, phase, message string }
	degraded := func(reason, message string) want { return want{"False " + reason + " " + message, "Degraded", message} }
	cases := map[string]struct {
		reason string
		change func(*crossplane)
		want   want
	}{
		"Room":       {reason: "There is room.", want: want{"True Healthy", "Running", ""}},
		"Below":      {reason: "Below the first threshold nothing is said.", change: filled(0, 79), want: want{"True Healthy", "Running", ""}},
		"NearlyFull": {reason: "Above 80 percent a user should act.", change: filled(1, 80), want: degraded("NearlyFull", "Volumes are filled: that of orders-postgresql-1 to more than 80 percent: raise storageSize")},
		"Full":       {reason: "Above 90 percent at once.", change: filled(0, 90), want: degraded("Full", "Volumes are filled: that of orders-postgresql-0 to more than 90 percent: raise storageSize")},
		"Between":    {reason: "A figure that moves moves no message.", change: filled(0, 97), want: degraded("Full", "Volumes are filled: that of orders-postgresql-0 to more than 90 percent: raise storageSize")},
		"Both": {
			reason: "The fullest one gives the reason, each is named.", change: both(filled(0, 90), filled(2, 80)),
			want: degraded("Full", "Volumes are filled: that of orders-postgresql-0 to more than 90 percent, that of orders-postgresql-2 to more than 80 percent: raise storageSize"),
		},
		"VolumeResizeFailed": {reason: "A volume that cannot grow says why.", change: stuck, want: degraded("VolumeResizeFailed", "Volumes do not have their size: that of orders-postgresql-1 "+no)},
		"FullAndStuck":       {reason: "That it is full comes first.", change: both(stuck, filled(1, 80)), want: degraded("NearlyFull", "Volumes are filled: that of orders-postgresql-1 to more than 80 percent: raise storageSize")},
		"FormerServer":       {reason: "A server that is gone fills nothing.", change: func(c *crossplane) { c.Report("orders-postgresql-3.json", `{"filling":90}`) }, want: want{"True Healthy", "Running", ""}},
		"StorageAndLast":     {reason: "Of two troubles the message has the first, each has its condition.", change: both(filled(0, 90), func(c *crossplane) { c.ReportCluster(func(r *instance.Cluster) { r.Standbys[0].Lagging = true }) }), want: want{"False Full Volumes are filled: that of orders-postgresql-0 to more than 90 percent: raise storageSize", "Degraded", "Far behind the primary: orders-postgresql-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Settle()
			if tc.change != nil {
				tc.change(c)
			}
			rsp := c.Reconcile()
			if got := (want{c.ConditionLine("StorageHealthy"), c.Phase(), c.Message()}); got != tc.want {
				t.Errorf("%s\nwant %+v\ngot  %+v", tc.reason, tc.want, got)
			}
			if len(functionstest.Waiting(rsp)) > 0 {
				t.Errorf("%s\nit serves, so it is ready: got %v", tc.reason, functionstest.Waiting(rsp))
			}
		})
	}
}

// TestProblems: the conditions show what the instance managers could not do, by subject. The rest
// of the claim is reconciled.
func TestProblems(t *testing.T) {
	extension := instance.Problem{Subject: instance.SubjectDatabase, Name: "shop", Message: `extension "postgis" is not available`}
	role := instance.Problem{Subject: instance.SubjectUser, Name: "reader", Message: "owns objects, so it stays"}
	parameter := instance.Problem{Subject: instance.SubjectParameter, Name: "work_mem", Message: `invalid value for parameter "work_mem": "lots"`}
	pod := instance.Problem{Subject: instance.SubjectPod, Name: "orders-postgresql-1", Message: "orders-postgresql-1: cannot be scheduled: Insufficient cpu"}
	type want struct{ parameters, databases string }
	const applied = "True Applied"
	cases := map[string]struct {
		reason   string
		problems []instance.Problem
		want     want
	}{
		"None":      {reason: "All is as the claim says.", want: want{applied, applied}},
		"Database":  {reason: "A database that is not as it should be.", problems: []instance.Problem{extension}, want: want{applied, `False ReconcileFailed database shop: extension "postgis" is not available`}},
		"User":      {reason: "A user who is not.", problems: []instance.Problem{role}, want: want{applied, "False ReconcileFailed user reader: owns objects, so it stays"}},
		"Both":      {reason: "Each is named, in their order.", problems: []instance.Problem{extension, role}, want: want{applied, `False ReconcileFailed database shop: extension "postgis" is not available, user reader: owns objects, so it stays`}},
		"Parameter": {reason: "A parameter that PostgreSQL does not take.", problems: []instance.Problem{parameter}, want: want{`False ParametersRefused parameter work_mem: invalid value for parameter "work_mem": "lots"`, applied}},
		"Other":     {reason: "What is neither is told elsewhere.", problems: []instance.Problem{pod}, want: want{applied, applied}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Settle()
			c.ReportCluster(func(r *instance.Cluster) { r.Problems = tc.problems })
			rsp := c.Reconcile()
			failure := ""
			if slices.Contains(tc.problems, pod) {
				failure = pod.Message
			}
			if got := functionstest.Get(c.Claim, "status", "podFailure").GetStringValue(); got != failure {
				t.Errorf("%s\nwant podFailure %q, got %q", tc.reason, failure, got)
			}
			if got := (want{c.ConditionLine("ParametersApplied"), c.ConditionLine("DatabasesReady")}); got != tc.want {
				t.Errorf("%s\nwant %+v\ngot  %+v", tc.reason, tc.want, got)
			}
			if c.Phase() != "Running" || len(functionstest.Waiting(rsp)) > 0 {
				t.Errorf("%s\nit serves as before: got %s, waiting for %v", tc.reason, c.Phase(), functionstest.Waiting(rsp))
			}
		})
	}
}

// TestConditionsBefore: no condition is True for something that has not been created or applied.
func TestConditionsBefore(t *testing.T) {
	c := simulate(t, functionstest.Production)
	want := map[string]string{
		"ReplicationHealthy": "False NoPrimary No primary takes writes", "ParametersApplied": "False Pending Nothing has been applied yet", "DatabasesReady": "False Pending Nothing has been applied yet",
		"StorageHealthy": "True Healthy", "BackupHealthy": "False Pending Nothing has been archived yet", "ArchivingHealthy": "False Pending Nothing has been archived yet",
	}
	check := func(when string) {
		t.Helper()
		for typ, w := range want {
			if got := c.ConditionLine(typ); got != w {
				t.Errorf("%s: %s: want %q, got %q", when, typ, w, got)
			}
		}
	}
	c.Reconcile()
	check("Nothing exists")
	c.Reconcile()
	check("The servers start")
	c.Settle()
	want["ReplicationHealthy"], want["ParametersApplied"], want["DatabasesReady"] = "True Healthy", "True Applied", "True Applied"
	want["BackupHealthy"], want["ArchivingHealthy"] = noBackups, "True Archiving"
	check("All is there")
	// A change in progress does not reset conditions, but a new standby is reported as missing
	// until it follows.
	c.Edit(5, "size")
	c.Reconcile()
	want["ReplicationHealthy"] = "False StandbyMissing Not following the primary: orders-postgresql-3, orders-postgresql-4"
	check("More is asked for")
}

// TestSameBytes: the same input gives the same bytes, in whichever order a map is iterated, also
// with many problems.
func TestSameBytes(t *testing.T) {
	c := simulate(t, functionstest.BigCluster)
	c.Serve("podmonitor")
	c.Settle()
	for i := range int32(5) {
		c.ReportMember(i, func(m *instance.Member) { m.Filling, m.Restart = 80+10*int(i%2), true })
	}
	c.ReportCluster(func(r *instance.Cluster) {
		for i := range r.Standbys {
			r.Standbys[i].Streaming = i%2 == 0
		}
		for _, s := range []instance.Subject{instance.SubjectDatabase, instance.SubjectUser, instance.SubjectParameter, instance.SubjectPod} {
			r.Problems = append(r.Problems, instance.Problem{Subject: s, Name: "a", Message: "x"}, instance.Problem{Subject: s, Name: "b", Message: "y"})
		}
	})
	bytes := func() string {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.Run())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := bytes()
	for range 20 {
		if bytes() != first {
			t.Fatalf("the same input, another output")
		}
	}
}
