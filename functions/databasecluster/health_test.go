package databasecluster_test

import (
	"fmt"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestServersHealth: when the servers match the claim. A library calls a StatefulSet with the
// update strategy OnDelete current as soon as all of its pods are ready.
func TestServersHealth(t *testing.T) {
	pod := func(name, message string) func(*crossplane) {
		return func(c *crossplane) {
			c.ReportCluster(func(r *instance.Cluster) {
				r.Problems = append(r.Problems, instance.Problem{Subject: instance.SubjectPod, Name: name, Message: message})
			})
		}
	}
	member := func(ordinal int32, change func(*instance.Member)) func(*crossplane) {
		return func(c *crossplane) { c.ReportMember(ordinal, change) }
	}
	const well = "{observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 3}"
	cases := map[string]struct {
		reason string
		status string
		change func(*crossplane)
		want   string
	}{
		"Well":         {reason: "All are there, ready and current.", status: well, want: "ready"},
		"Unseen":       {reason: "A change that the controller has not seen.", status: "{observedGeneration: 0, replicas: 3, readyReplicas: 3, updatedReplicas: 3}", want: "Not all pods are ready"},
		"Fewer":        {reason: "One is not made yet.", status: "{observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2}", want: "Not all pods are ready"},
		"More":         {reason: "One is still going.", status: "{observedGeneration: 1, replicas: 4, readyReplicas: 3, updatedReplicas: 4}", want: "Not all pods are ready"},
		"NotReady":     {reason: "One is not ready, for an unknown reason.", status: "{observedGeneration: 1, replicas: 3, readyReplicas: 2, updatedReplicas: 3}", want: "Not all pods are ready"},
		"NotReadyWhy":  {reason: "The manager of another one knows the reason.", status: "{observedGeneration: 1, replicas: 3, readyReplicas: 2, updatedReplicas: 3}", change: pod("orders-postgresql-2", "orders-postgresql-2: cannot be scheduled: Insufficient cpu"), want: "orders-postgresql-2: cannot be scheduled: Insufficient cpu"},
		"NotReadySays": {reason: "The manager beside it knows one.", status: "{observedGeneration: 1, replicas: 3, readyReplicas: 2, updatedReplicas: 3}", change: member(1, func(m *instance.Member) { m.Message = "Patroni does not answer" }), want: "orders-postgresql-1: Patroni does not answer"},
		"NotReadyBoth": {reason: "Why its pod fails is the cause of that.", status: "{observedGeneration: 1, replicas: 3, readyReplicas: 2, updatedReplicas: 3}", change: func(c *crossplane) {
			member(1, func(m *instance.Member) { m.Message = "Patroni does not answer" })(c)
			pod("orders-postgresql-1", "orders-postgresql-1: out of memory")(c)
		}, want: "orders-postgresql-1: out of memory"},
		"ReadySays":     {reason: "What a server that is ready reports keeps nothing back.", status: well, change: member(1, func(m *instance.Member) { m.Message = "Patroni does not answer" }), want: "ready"},
		"Outdated":      {reason: "One is of an older revision: it is replaced when it is deleted.", status: "{observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 2, currentRevision: a, updateRevision: b}", want: "Servers are being replaced one at a time"},
		"OutdatedWhy":   {reason: "It is not, and the manager says why.", status: "{observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 2}", change: pod("orders-postgresql-0", "the primary cannot hand over"), want: "the primary cannot hand over"},
		"Restart":       {reason: "A parameter waits for a restart.", status: well, change: member(2, func(m *instance.Member) { m.Restart = true }), want: "Servers are being restarted one at a time"},
		"RestartFormer": {reason: "That of a server that is gone waits for nothing.", status: well, change: func(c *crossplane) { c.Report("orders-postgresql-3.json", `{"restart":true}`) }, want: "ready"},
		"Growing":       {reason: "A volume has not its size yet.", status: well, change: member(1, func(m *instance.Member) { m.Capacity = "10Gi" }), want: "Volumes are being grown"},
		"Stuck":         {reason: "One that cannot have it is not waited for.", status: well, change: member(1, func(m *instance.Member) { m.Capacity, m.Volume = "10Gi", "cannot grow" }), want: "ready"},
		"Bigger":        {reason: "More than asked for is fine: disks come in sizes.", status: well, change: member(1, func(m *instance.Member) { m.Capacity = "25Gi" }), want: "ready"},
		"Silent": {reason: "Who has told nothing is waited for by its pod alone.", status: well, change: func(c *crossplane) {
			delete(functionstest.Fields(c.Observed["instances"], "data"), "orders-postgresql-1.json")
		}, want: "ready"},
		"OtherProblem": {reason: "What is no pod's keeps no pod back.", status: "{observedGeneration: 1, replicas: 3, readyReplicas: 2, updatedReplicas: 3}", change: func(c *crossplane) {
			c.ReportCluster(func(r *instance.Cluster) {
				r.Problems = []instance.Problem{{Subject: instance.SubjectUser, Message: "x"}}
			})
		}, want: "Not all pods are ready"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Settle()
			c.SetStatus("postgresql", tc.status)
			if tc.change != nil {
				tc.change(c)
			}
			rsp := c.Reconcile()
			if got := c.ComponentStatus("postgresql"); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if got := rsp.GetDesired().GetResources()["postgresql"].GetReady() == fnv1.Ready_READY_TRUE; got != (tc.want == "ready") {
				t.Errorf("%s\nto Crossplane: got ready %t", tc.reason, got)
			}
		})
	}
}

// TestPodFailure: while no server is up, the function requests the pods and reports why they do not
// start. It does not request pods that run, as they change all the time.
func TestPodFailure(t *testing.T) {
	pod := func(ordinal int, status string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: orders-postgresql-%d, namespace: team, labels: {storeplane.example.com/patroni: orders-postgresql}}\nstatus: %s", ordinal, status)
	}
	const (
		image   = `{initContainerStatuses: [{name: instance, image: 'registry.example.com/storeplane/postgresql:17.99', state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "postgresql:17.99": ErrImagePull: postgresql:17.99: not found'}}}]}`
		full    = `{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: '0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available.'}]}`
		waiting = `{containerStatuses: [{name: postgresql, image: x, state: {waiting: {reason: PodInitializing}}}]}`
		noTLS   = `{containerStatuses: [{name: postgresql, image: x, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "certs" not found'}}}]}`
	)
	none := "{observedGeneration: 1, replicas: 3, updatedReplicas: 3}"
	asked := map[string]*fnv1.ResourceSelector{"pods": {
		ApiVersion: "v1", Kind: "Pod", Namespace: new("team"),
		Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"storeplane.example.com/patroni": "orders-postgresql"}}},
	}}
	type want struct {
		asked   map[string]*fnv1.ResourceSelector
		message string
	}
	words := func(text string) want { return want{asked, "Waiting for postgresql (" + text + ")"} }
	cases := map[string]struct {
		reason string
		status string
		pods   []string
		want   want
	}{
		"NoImage":       {reason: "An image that does not exist is named.", status: none, pods: []string{pod(0, image)}, want: words("orders-postgresql-0: cannot pull image registry.example.com/storeplane/postgresql:17.99: not found")},
		"Unschedulable": {reason: "The scheduler's words, as far as they hold.", status: none, pods: []string{pod(0, full)}, want: words("orders-postgresql-0: cannot be scheduled: Insufficient memory")},
		"NoSecret":      {reason: "What is mounted and is not there.", status: none, pods: []string{pod(0, noTLS)}, want: words(`orders-postgresql-0: cannot start container postgresql: secret "certs" not found`)},
		"Starting":      {reason: "What passes by itself is no trouble.", status: none, pods: []string{pod(0, waiting)}, want: words("No primary has been elected yet")},
		"NoPods":        {reason: "No pod has none either.", status: none, want: words("No primary has been elected yet")},
		"First":         {reason: "The first in trouble speaks for all, in whichever order they come.", status: none, pods: []string{pod(2, full), pod(1, image), pod(0, waiting)}, want: words("orders-postgresql-1: cannot pull image registry.example.com/storeplane/postgresql:17.99: not found")},
		"Strangers":     {reason: "Pods that are not the claim's do not count.", status: none, pods: []string{"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: team}\nstatus: " + image}, want: words("No primary has been elected yet")},
		"OneReady":      {reason: "With one server up its manager tells about the others.", status: "{observedGeneration: 1, replicas: 3, readyReplicas: 1, updatedReplicas: 3}", pods: []string{pod(1, full)}, want: want{message: "Waiting for postgresql (No primary has been elected yet)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			if asked := c.Reconcile().GetRequirements().GetResources(); asked["pods"] != nil {
				t.Errorf("%s\nwhat does not exist has no pods: got %v", tc.reason, asked)
			}
			c.Reconcile()
			c.SetStatus("postgresql", tc.status)
			for _, p := range tc.pods {
				c.Add(p)
			}
			rsp := c.Reconcile()
			if diff := cmp.Diff(tc.want, want{rsp.GetRequirements().GetResources(), c.Message()}, cmp.AllowUnexported(want{}), protocmp.Transform()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPodFailureWaits: pods that start change all the time, so the function does not request them
// in the first seconds, and for longer where the first one's manager shows that its pod runs.
func TestPodFailureWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		age    time.Duration
		report string
		want   bool
	}{
		"New":           {age: 2 * time.Second},
		"Late":          {age: 9 * time.Second, want: true},
		"Reported":      {age: 9 * time.Second, report: "{orders-postgresql-0.json: '{}'}"},
		"ReportedLate":  {age: 21 * time.Second, report: "{orders-postgresql-0.json: '{}'}", want: true},
		"PrimaryIsGone": {age: 9 * time.Second, report: `{orders-postgresql-0.json: '{}', cluster.json: '{"primary":"orders-postgresql-0"}'}`, want: true},
	} {
		c := simulate(t, functionstest.Production)
		c.Reconcile()
		c.Reconcile()
		c.SetStatus("postgresql", "{observedGeneration: 1, replicas: 3, updatedReplicas: 3}")
		if tc.report != "" {
			c.Observed["instances"].Fields["data"] = structpb.NewStructValue(functionstest.Parse(t, tc.report))
		}
		age, want := tc.age, tc.want
		conditions := functionstest.Parse(t, `conditions: [{type: Ready, status: "False", lastTransitionTime: "`+time.Now().Add(-age).UTC().Format(time.RFC3339)+`"}]`)
		functionstest.Fields(c.Claim, "status")["conditions"] = functionstest.Get(conditions, "conditions")
		if got := c.Run().GetRequirements().GetResources()["pods"] != nil; got != want {
			t.Errorf("%s: not ready for %v: pods are asked for: want %t, got %t", name, age, want, got)
		}
	}
}

// TestPodFailureLater: pods are also requested if all was healthy before, but not while the cluster
// is hibernated.
func TestPodFailureLater(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	if rsp := c.Run(); len(rsp.GetRequirements().GetResources()) > 0 {
		t.Errorf("want nothing to be asked for while all is well, got %v", rsp.GetRequirements())
	}
	c.SetStatus("postgresql", "{observedGeneration: 1, replicas: 3, updatedReplicas: 3}")
	c.Add("apiVersion: v1\nkind: Pod\nmetadata: {name: orders-postgresql-0, namespace: team, labels: {storeplane.example.com/patroni: orders-postgresql}}\nstatus: {containerStatuses: [{name: postgresql, image: x, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}}]}")
	c.Reconcile()
	if want := "orders-postgresql-0: container postgresql keeps failing"; c.Phase() != "Degraded" || c.ComponentStatus("postgresql") != want {
		t.Errorf("want Degraded and %q, got %s and %q", want, c.Phase(), c.ComponentStatus("postgresql"))
	}

	c.Edit(true, "hibernated")
	c.Settle()
	if rsp := c.Run(); len(rsp.GetRequirements().GetResources()) > 0 {
		t.Errorf("want nothing to be asked for in its sleep, got %v", rsp.GetRequirements())
	}
}
