package databasecluster_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestScalesDown: servers are removed once none of them is the primary or the only synchronous
// standby.
func TestScalesDown(t *testing.T) {
	primary := func(ordinal int32) func(*instance.Cluster) {
		return func(r *instance.Cluster) {
			was := r.Primary
			r.Primary = instance.Pod("orders-postgresql", ordinal)
			for i := range r.Standbys {
				if r.Standbys[i].Name == r.Primary {
					r.Standbys[i].Name = was
				}
			}
		}
	}
	inStep := func(ordinals ...int32) func(*instance.Cluster) {
		return func(r *instance.Cluster) {
			for i := range r.Standbys {
				r.Standbys[i].Synchronous = false
				for _, o := range ordinals {
					r.Standbys[i].Synchronous = r.Standbys[i].Synchronous || r.Standbys[i].Name == instance.Pod("orders-postgresql", o)
				}
			}
		}
	}
	const five, asynchronous = "{size: 5, version: '17', environment: production}", "{size: 5, version: '17'}"
	cases := map[string]struct {
		reason string
		spec   string
		size   int32
		report func(*instance.Cluster)
		status string
		want   int32
	}{
		"Free":             {reason: "Nothing holds them.", spec: five, size: 3, want: 3},
		"PrimaryGoes":      {reason: "The primary is on one that goes.", spec: five, size: 3, report: primary(4), want: 5},
		"PrimaryAtEdge":    {reason: "The first one that goes goes as well.", spec: five, size: 3, report: primary(3), want: 5},
		"PrimaryStays":     {reason: "The last one that stays stays.", spec: five, size: 3, report: primary(2), want: 3},
		"NoneInStepStays":  {reason: "The only one in step would go.", spec: five, size: 3, report: inStep(3, 4), want: 5},
		"OneInStepStays":   {reason: "One in step stays.", spec: five, size: 3, report: inStep(1, 4), want: 3},
		"NoneInStep":       {reason: "With no standby in sync no server is removed.", spec: five, size: 3, report: inStep(), want: 5},
		"Asynchronous":     {reason: "A primary that waits for no standby needs none in sync.", spec: asynchronous, size: 3, report: inStep(), want: 3},
		"ToOne":            {reason: "The last server waits for no standby.", spec: five, size: 1, report: inStep(4), want: 1},
		"ToOnePrimaryGoes": {reason: "It must be the primary.", spec: five, size: 1, report: primary(1), want: 5},
		"NoPrimary":        {reason: "While there is no primary it is unknown which servers are needed.", spec: five, size: 3, report: func(r *instance.Cluster) { r.Primary = "" }, want: 5},
		"NoneReady":        {reason: "The last report may be outdated when no server is up.", spec: five, size: 3, status: "{observedGeneration: 1, replicas: 5, updatedReplicas: 5}", want: 5},
		"Up":               {reason: "More are never held.", spec: five, size: 7, report: primary(4), want: 7},
		"UpNoPrimary":      {reason: "Whatever there is.", spec: five, size: 7, report: func(r *instance.Cluster) { r.Primary = "" }, want: 7},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settle()
			c.Edit(int64(tc.size), "size")
			c.Reconcile()
			if got, want := *servers(t, c).Spec.Replicas, max(5, tc.size); got != want {
				t.Errorf("%s\nA report from before the edit lets no server be removed: want %d, got %d", tc.reason, want, got)
			}
			c.Heal("instances")
			if tc.report != nil {
				c.ReportCluster(tc.report)
			}
			if tc.status != "" {
				c.SetStatus("postgresql", tc.status)
			}
			c.Reconcile()
			if got := *servers(t, c).Spec.Replicas; got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
			if got := desiredOf(t, c).Size; got != tc.size {
				t.Errorf("%s\nThe managers are told what is asked for, so that the primary moves: want %d, got %d", tc.reason, tc.size, got)
			}
			if c.Phase() != "Scaling" {
				t.Errorf("%s\nwant Scaling, got %s", tc.reason, c.Phase())
			}
		})
	}
}

// TestScalesDownLater: servers that must stay for now are removed later, and the claim reports why
// it waits.
func TestScalesDownLater(t *testing.T) {
	c := simulate(t, "{size: 5, version: '17'}")
	c.Settle()
	c.ReportCluster(func(r *instance.Cluster) { r.Primary = "orders-postgresql-4" })
	c.Edit(3, "size")
	for range 3 {
		c.Reconcile()
		if want := "Switchover in progress"; *servers(t, c).Spec.Replicas != 5 || c.ComponentStatus("postgresql") != want && c.ComponentStatus("postgresql") != "Reconciling databases, users and passwords" {
			t.Errorf("want five servers and %q, got %d and %q", want, *servers(t, c).Spec.Replicas, c.ComponentStatus("postgresql"))
		}
		// The instance manager has read the new size, and has not moved the primary yet.
		c.Heal("instances")
		c.ReportCluster(func(r *instance.Cluster) { r.Primary = "orders-postgresql-4" })
	}
	if want := "Waiting for postgresql (Switchover in progress)"; c.Phase() != "Scaling" || c.Message() != want {
		t.Errorf("want Scaling and %q, got %s and %q", want, c.Phase(), c.Message())
	}
	c.ReportCluster(func(r *instance.Cluster) { r.Primary = "orders-postgresql-1" })
	c.Reconcile()
	if got := *servers(t, c).Spec.Replicas; got != 3 {
		t.Errorf("want three servers once the primary has moved, got %d", got)
	}
	c.Settle()

	// The read-only Service is removed with the last standby.
	c.Edit(1, "size")
	c.Settle()
	if c.Observed["replica"] != nil || functionstest.Fields(c.Observed["connection"], "data")["ro-host"] != nil || functionstest.Get(c.Claim, "status", "readOnlyEndpoint") != nil {
		t.Errorf("one server has nothing to read from")
	}
}

// TestScalesDownUnread: a report only counts for the size that the instance managers had read when
// they wrote it. The primary may have handed over since to a server that is to be removed.
func TestScalesDownUnread(t *testing.T) {
	c := simulate(t, "{size: 5, version: '17', environment: production}")
	c.Settle()
	step := func(what string, want int32) {
		t.Helper()
		for range 2 {
			c.Reconcile()
		}
		if got := *servers(t, c).Spec.Replicas; got != want {
			t.Errorf("%s: want %d servers, got %d", what, want, got)
		}
	}
	read := functionstest.Get(c.Observed["config"], "data", instance.DesiredKey).GetStringValue()
	stale := func(r *instance.Cluster) { r.Applied = instance.Digest(read) }

	c.Edit(4, "size")
	step("Fewer are asked for", 5)
	c.Heal("instances")
	c.Edit(3, "size")
	step("Another size is asked for before those have gone", 5)
	c.Heal("instances")
	c.ReportCluster(stale)
	step("The report is of the size at first", 5)
	c.ReportCluster(func(r *instance.Cluster) { r.Applied = "" })
	step("Or of none", 5)
	c.Heal("instances")
	step("It is of the size that is asked for", 3)

	c.Edit(1, "size")
	step("The last one is waited for too", 3)
	c.Heal("instances")
	step("And stays alone", 1)

	c.Edit(5, "size")
	step("More do not wait until a manager has read it", 5)
}

// TestUpdateStrategy: whether the StatefulSet controller or the instance manager replaces pods when
// they change.
func TestUpdateStrategy(t *testing.T) {
	const rolling, onDelete = "RollingUpdate", "OnDelete"
	const status = "{observedGeneration: 1, replicas: %d, readyReplicas: %d, updatedReplicas: %d}"
	two := "{size: 2, version: '17'}"
	toOne := func(c *crossplane) {
		c.Edit(1, "size")
		c.Reconcile()
		c.Heal("instances")
	}
	cases := map[string]struct {
		reason string
		spec   string
		change func(*crossplane)
		want   string
	}{
		"One":        {reason: "One server has no standby to hand over to.", spec: functionstest.OneServer, want: rolling},
		"Two":        {reason: "Of more the primary's manager replaces the standbys first.", spec: two, want: onDelete},
		"Production": {reason: "However many.", spec: functionstest.Production, want: onDelete},
		"SomeReady":  {reason: "While one is up there is a manager that replaces pods.", spec: two, change: func(c *crossplane) { c.SetStatus("postgresql", fmt.Sprintf(status, 2, 1, 0)) }, want: onDelete},
		"NoneReady":  {reason: "When none is up and all are current there is nothing to replace.", spec: two, change: func(c *crossplane) { c.SetStatus("postgresql", fmt.Sprintf(status, 2, 0, 2)) }, want: onDelete},
		"Dead":       {reason: "When none is up and one is outdated no manager would replace it.", spec: two, change: func(c *crossplane) { c.SetStatus("postgresql", fmt.Sprintf(status, 2, 0, 1)) }, want: rolling},
		"Grows":      {reason: "The second server brings the change.", spec: functionstest.OneServer, change: func(c *crossplane) { c.Edit(2, "size") }, want: onDelete},
		"Shrinks": {reason: "The last one is left alone.", spec: two, change: func(c *crossplane) {
			toOne(c)
			c.Settle()
		}, want: rolling},
		"ShrinksNow": {reason: "While the others still run, the new pod template of one server would stop all of them together.", spec: two, change: func(c *crossplane) {
			toOne(c)
			c.Reconcile()
			c.SetStatus("postgresql", fmt.Sprintf(status, 2, 2, 2))
		}, want: onDelete},
		"ShrinksHeld": {reason: "While another one is held it is not.", spec: two, change: func(c *crossplane) {
			toOne(c)
			c.ReportCluster(func(r *instance.Cluster) { r.Primary = "orders-postgresql-1" })
		}, want: onDelete},
		"ShrinksUnread":   {reason: "Nor while the managers have not read that it shall be.", spec: two, change: func(c *crossplane) { c.Edit(1, "size") }, want: onDelete},
		"Hibernated":      {reason: "In its sleep nothing changes it.", spec: two, change: func(c *crossplane) { c.Edit(true, "hibernated"); c.Settle() }, want: onDelete},
		"HibernatedOfOne": {reason: "Nor there.", spec: functionstest.OneServer, change: func(c *crossplane) { c.Edit(true, "hibernated"); c.Settle() }, want: rolling},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settle()
			if tc.change != nil {
				tc.change(c)
			}
			c.Reconcile()
			if got := string(servers(t, c).Spec.UpdateStrategy.Type); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
			if got := string(servers(t, c).Spec.PodManagementPolicy); got != "Parallel" {
				t.Errorf("%s\nafter an outage none waits for another: got %s", tc.reason, got)
			}
		})
	}
}

// TestRevives: if no server is ready after a change, the outdated ones are replaced by the
// StatefulSet controller, as no instance manager runs that could do it.
func TestRevives(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	c.Edit("17.3", "version")
	c.Reconcile()
	generation := functionstest.Get(c.Observed["postgresql"], "metadata", "generation").GetNumberValue()
	c.SetStatus("postgresql", fmt.Sprintf("{observedGeneration: %v, replicas: 3, updatedReplicas: 1}", generation))
	c.Reconcile()
	if got := servers(t, c).Spec.UpdateStrategy.Type; got != "RollingUpdate" {
		t.Errorf("want the outdated ones to be replaced, got %s", got)
	}
	c.Settle()
	if got := servers(t, c).Spec.UpdateStrategy.Type; got != "OnDelete" || c.Phase() != "Running" {
		t.Errorf("want the manager to do that again, got %s in phase %s", got, c.Phase())
	}
}

// TestHibernates: servers are removed and created again, and everything else stays.
func TestHibernates(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	before, passwords := c.ComponentNames(), drawn(c)
	// All servers are removed at once, whichever of them is the primary.
	c.ReportCluster(func(r *instance.Cluster) { r.Primary = "orders-postgresql-2" })
	c.Edit(true, "hibernated")
	c.Reconcile()
	if got := *servers(t, c).Spec.Replicas; got != 0 {
		t.Errorf("want no servers, got %d", got)
	}
	if !desiredOf(t, c).Hibernated {
		t.Errorf("the managers are told that none is to take over")
	}
	c.Settle()
	rsp := c.Reconcile()
	if len(functionstest.Waiting(rsp)) > 0 || c.Phase() != "Hibernated" || c.Message() != "" {
		t.Errorf("want it to sleep and be ready, got %s, %q, waiting for %v", c.Phase(), c.Message(), functionstest.Waiting(rsp))
	}
	if p := functionstest.Get(c.Claim, "status", "primary"); p != nil {
		t.Errorf("no server is primary, got %v", p)
	}
	if got := fmt.Sprint(c.ComponentNames()); got != fmt.Sprint(before) {
		t.Errorf("want all to stay, got %s, had %v", got, before)
	}
	if policy := servers(t, c).Spec.PersistentVolumeClaimRetentionPolicy; policy.WhenScaled != "Retain" {
		t.Errorf("the volumes stay, got %v", policy)
	}

	c.Edit(false, "hibernated")
	c.Settle()
	if got := *servers(t, c).Spec.Replicas; got != 3 || c.Phase() != "Running" || desiredOf(t, c).Hibernated {
		t.Errorf("want three servers again, got %d in phase %s", got, c.Phase())
	}
	if fmt.Sprint(drawn(c)) != fmt.Sprint(passwords) {
		t.Errorf("its passwords are those that are in the data")
	}
}

// TestHibernatesChanged: a hibernated cluster may be started with another size.
func TestHibernatesChanged(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	c.Edit(true, "hibernated")
	c.Settle()
	c.Edit(2, "size")
	c.Edit("30Gi", "storageSize")
	c.Settle()
	if got := *servers(t, c).Spec.Replicas; got != 0 || c.Phase() != "Hibernated" {
		t.Errorf("want it to sleep on, got %d servers in phase %s", got, c.Phase())
	}
	c.Edit(false, "hibernated")
	c.Settle()
	if got := *servers(t, c).Spec.Replicas; got != 2 || desiredOf(t, c).Storage != "30Gi" {
		t.Errorf("want two servers with 30Gi, got %d with %s", got, desiredOf(t, c).Storage)
	}
}

// TestWakesWithFewer: the server that was primary before hibernation is started again, whatever the
// size is by then, as its volume may hold data that no other has. It is removed once a server that
// stays has taken over.
func TestWakesWithFewer(t *testing.T) {
	const five = "{size: 5, version: '17', environment: production}"
	asleep := func(primary int32, standbys ...int32) func(*instance.Cluster) {
		return func(r *instance.Cluster) {
			r.Primary, r.Standbys = instance.Pod("orders-postgresql", primary), nil
			for _, s := range standbys {
				r.Standbys = append(r.Standbys, instance.Standby{Name: instance.Pod("orders-postgresql", s)})
			}
		}
	}
	cases := map[string]struct {
		reason string
		before func(*instance.Cluster)
		size   int32
		want   int32
	}{
		"PrimaryLast":  {reason: "The primary was the last one.", before: asleep(4, 0, 1, 2, 3), size: 2, want: 5},
		"PrimaryFirst": {reason: "A standby may have taken over and not said so.", before: asleep(0, 1, 2, 3, 4), size: 2, want: 5},
		"PrimaryAlone": {reason: "The others had gone when the last report was written.", before: asleep(3), size: 1, want: 4},
		"Shrunk":       {reason: "It was smaller when it fell asleep.", before: asleep(1, 0), size: 2, want: 2},
		"ToOne":        {reason: "One that stays alone must be the primary.", before: asleep(1, 0), size: 1, want: 2},
		"Same":         {reason: "All wake.", before: asleep(4, 0, 1, 2, 3), size: 5, want: 5},
		"More":         {reason: "More are never held.", before: asleep(4, 0, 1, 2, 3), size: 7, want: 7},
		"NeverJoined": {reason: "One that had not followed the primary has no writes.", before: func(r *instance.Cluster) {
			asleep(1, 0)(r)
			r.Standbys = append(r.Standbys, instance.Standby{Name: instance.Pod("orders-postgresql", 4), New: true})
		}, size: 2, want: 2},
		"Never": {reason: "There never was a primary.", before: func(r *instance.Cluster) { *r = instance.Cluster{} }, size: 2, want: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, five)
			c.Settle()
			c.Edit(true, "hibernated")
			c.Settle()
			c.ReportCluster(tc.before)
			c.Edit(tc.size, "size")
			c.Reconcile()
			if got := *servers(t, c).Spec.Replicas; got != 0 {
				t.Errorf("%s\nit sleeps on: want no servers, got %d", tc.reason, got)
			}
			c.Edit(false, "hibernated")
			for range 3 {
				c.Reconcile()
				if got := *servers(t, c).Spec.Replicas; got != tc.want {
					t.Fatalf("%s\nwant %d servers to wake, got %d", tc.reason, tc.want, got)
				}
			}
			// A server that stays takes over.
			c.Settle()
			c.ReportCluster(func(r *instance.Cluster) {
				r.Primary, r.Standbys = instance.Pod("orders-postgresql", 0), []instance.Standby{{Name: instance.Pod("orders-postgresql", 1), Streaming: true, Synchronous: true}}
			})
			c.Settle()
			if got := *servers(t, c).Spec.Replicas; got != tc.size {
				t.Errorf("%s\nwant %d servers in the end, got %d", tc.reason, tc.size, got)
			}
		})
	}
}

// TestLost: if servers that ran have lost all volumes, the claim reports it. Reports by a server of
// a deleted cluster are ignored.
func TestLost(t *testing.T) {
	c := simulate(t, functionstest.OneServer)
	c.Settle()
	if c.Phase() != "Running" {
		t.Fatalf("want it Running, got %s: %s", c.Phase(), c.Message())
	}
	c.ReportCluster(func(r *instance.Cluster) { r.Set, r.Owner = "of-another-one", "of-another-one" })
	c.Reconcile()
	if got := functionstest.Get(c.Claim, "status", "primary").GetStringValue(); got != "" {
		t.Errorf("want no primary by what another cluster's server says, got %s", got)
	}
	c.ReportCluster(func(r *instance.Cluster) {
		r.Set = functionstest.Get(c.Observed["postgresql"], "metadata", "uid").GetStringValue()
	})
	c.Reconcile()
	if got := functionstest.Get(c.Claim, "status", "primary").GetStringValue(); got != "orders-postgresql-0" {
		t.Errorf("want its own primary, got %q", got)
	}

	const lost = "no volume has this cluster's data any more"
	c.SetStatus("postgresql", `{"observedGeneration": 1, "replicas": 1, "readyReplicas": 0}`)
	c.ReportMember(0, func(m *instance.Member) { m.Held = &instance.Held{Message: lost, Undecided: true} })
	c.Reconcile()
	if c.Phase() != "Failed" || !strings.Contains(c.Message(), lost) || c.ConditionLine("ReplicationHealthy") != "False LeaderUndecided "+lost {
		t.Errorf("want Failed and %q, got %s, %q and %q", lost, c.Phase(), c.Message(), c.ConditionLine("ReplicationHealthy"))
	}
}

// TestComparedAfterPrimary: a server that has been primary, and is alone after servers were removed, may need
// their volumes again, whatever it has reported before.
func TestComparedAfterPrimary(t *testing.T) {
	for _, former := range []string{"orders-postgresql-0", "orders-postgresql-2"} {
		c := simulate(t, functionstest.OneServer)
		c.Settle()
		c.ReportCluster(func(r *instance.Cluster) { r.Primary = former })
		c.SetStatus("postgresql", `{"observedGeneration": 1, "replicas": 1, "readyReplicas": 0}`)
		c.ReportMember(0, func(m *instance.Member) { m.Servers, m.Held = 3, &instance.Held{Message: "Waiting for server 3"} })
		c.Reconcile()
		if got := *servers(t, c).Spec.Replicas; got != 3 {
			t.Errorf("want a server for each volume after %s was the primary, got %d", former, got)
		}
	}
}

// TestReclaimed: the volumes that an earlier cluster of the same name left are compared before one
// of them leads, whatever the size is.
func TestReclaimed(t *testing.T) {
	c := simulate(t, functionstest.OneServer)
	c.Reconcile()
	size := func() int32 { return *servers(t, c).Spec.Replicas }
	say := func(m instance.Member) {
		t.Helper()
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		c.Report(instance.MemberKey("orders-postgresql-0"), string(b))
	}
	const waits = "Waiting for the contents of volume claim data-orders-postgresql-2"
	say(instance.Member{Servers: 3, Held: &instance.Held{Message: waits}})
	c.Reconcile()
	c.Reconcile()
	if size() != 3 || c.Message() != "Waiting for postgresql ("+waits+")" {
		t.Errorf("want a server for each volume and %q, got %d and %q", waits, size(), c.Message())
	}

	const undecided = "The leading volume is undecided: volume claims a, b hold different databases"
	say(instance.Member{Servers: 3, Held: &instance.Held{Message: undecided, Undecided: true}})
	c.Reconcile()
	if c.Phase() != "Failed" || !strings.Contains(c.Message(), undecided) || c.ConditionLine("ReplicationHealthy") != "False LeaderUndecided "+undecided {
		t.Errorf("want Failed and %q, got %s, %q and %q", undecided, c.Phase(), c.Message(), c.ConditionLine("ReplicationHealthy"))
	}
	functionstest.Set(c.Claim, "data-orders-postgresql-2@00000000", "metadata", "annotations", instance.LeadWithAnnotation)
	c.Reconcile()
	if got := desiredOf(t, c).LeadWith; got != "data-orders-postgresql-2@00000000" {
		t.Errorf("want the annotation to reach the managers, got %q", got)
	}

	// The newest volume belongs to a server that is not to stay, so the primary moves first.
	say(instance.Member{})
	c.Heal("instances")
	c.ReportCluster(func(r *instance.Cluster) { r.Primary = "orders-postgresql-2" })
	c.Heal("postgresql")
	for range 3 {
		if c.Reconcile(); size() != 3 {
			t.Fatalf("want three servers until the primary has moved, got %d", size())
		}
	}
	c.Settle()
	c.ReportCluster(func(r *instance.Cluster) { r.Primary = "orders-postgresql-0" })
	c.Settle()
	if size() != 1 || c.Phase() != "Running" {
		t.Errorf("want one server in the end, got %d in phase %s", size(), c.Phase())
	}
}
