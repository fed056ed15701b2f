package gitops

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/test/gitops/states"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// step is one step in the life of a claim.
type step struct {
	name   string
	do     func(*functionstest.Crossplane)
	expect states.Expectation
	// edited marks a step that begins with a change of the claim's spec.
	edited bool
	// serves marks a step in which the claim is Ready in each write of its status.
	serves bool
}

const (
	rolling  = `{observedGeneration: %v, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "False"}, {type: Progressing, status: "True"}]}`
	hopeless = `{observedGeneration: %v, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`
	servers  = `{observedGeneration: %v, replicas: 3, readyReplicas: 2, currentReplicas: 3, updatedReplicas: 3, currentRevision: a, updateRevision: a}`
	nested   = `{phase: %s, message: %q, conditions: [{type: Synced, status: "True", observedGeneration: %[3]v}, {type: Ready, status: %[4]q, observedGeneration: %[3]v}]}`
)

func edit(value any, path ...string) func(*functionstest.Crossplane) {
	return func(c *functionstest.Crossplane) { c.Edit(value, path...) }
}

func heal(c *functionstest.Crossplane) { c.Heal() }

// set returns a function that sets a component's status. %v in the status is its generation.
func set(component, status string) func(*functionstest.Crossplane) {
	return func(c *functionstest.Crossplane) {
		c.SetStatus(component, fmt.Sprintf(status, functionstest.Get(c.Observed[component], "metadata", "generation").GetNumberValue()))
	}
}

func setNested(component, phase, message, ready string) func(*functionstest.Crossplane) {
	return func(c *functionstest.Crossplane) {
		c.SetStatus(component, fmt.Sprintf(nested, phase, message, functionstest.Get(c.Observed[component], "metadata", "generation").GetNumberValue(), ready))
	}
}

// lives are the steps of claims. A step that heals a claim does so more than once, because
// components appear only once others are healthy.
var lives = map[string]struct {
	claim string
	steps []step
}{
	"WebApp": {claim: functionstest.SmallApp, steps: []step{
		{name: "Starts", expect: states.Working},
		{name: "Runs", do: heal, expect: states.Done},
		{name: "Edited", do: edit("registry.example.com/hello:2", "image"), edited: true, expect: states.Working},
		{name: "Rolls", do: set("web", rolling), expect: states.Working},
		{name: "Rolled", do: heal, expect: states.Done},
		{name: "EditedWithoutEffect", do: edit(1, "replicas"), edited: true, expect: states.Done, serves: true},
		{name: "PodLost", do: set("web", rolling), expect: states.Degraded},
		{name: "PodsFail", do: set("web", hopeless), expect: states.Failed},
		{name: "PodsRecover", do: heal, expect: states.Done},
		{name: "Refused", do: edit([]any{map[string]any{"name": "prune", "schedule": "61 * * * *"}}, "cronJobs"), edited: true, expect: states.Failed},
		{name: "RefusedAgain", do: edit([]any{map[string]any{"name": "prune", "schedule": "62 * * * *"}}, "cronJobs"), edited: true, expect: states.Failed},
		{name: "Undone", do: edit(nil, "cronJobs"), edited: true, expect: states.Done},
		{name: "EditFails", do: func(c *functionstest.Crossplane) {
			c.Edit("registry.example.com/hello:3", "image")
			c.Reconcile()
			set("web", hopeless)(c)
		}, edited: true, expect: states.Failed},
		{name: "EditUndone", do: func(c *functionstest.Crossplane) {
			c.Edit("registry.example.com/hello:2", "image")
			c.Reconcile()
			c.Heal()
		}, edited: true, expect: states.Done},
	}},
	"WebAppRefused": {claim: functionstest.WebApp(`{image: x, cronJobs: [{name: prune, schedule: "61 * * * *"}]}`), steps: []step{
		{name: "NeverAccepted", edited: true, expect: states.Failed},
		{name: "Corrected", do: func(c *functionstest.Crossplane) { c.Edit(nil, "cronJobs"); c.Reconcile(); c.Heal() }, edited: true, expect: states.Done},
	}},
	"WebAppConfig": {claim: functionstest.WebApp(`{image: x, config: {GREETING: hi}}`), steps: []step{
		{name: "ConfigStarts", expect: states.Working},
		{name: "ConfigRuns", do: heal, expect: states.Done},
		{name: "ConfigEdited", do: func(c *functionstest.Crossplane) { c.Edit("ho", "config", "GREETING"); c.Reconcile(); c.TakeUpConfig() }, edited: true, expect: states.Working},
		{name: "ConfigRolledBack", do: func(c *functionstest.Crossplane) {
			c.RollBackConfig("a pod keeps failing")
			c.Reconcile()
			c.Heal("web")
		}, expect: states.Failed},
		{name: "ConfigCorrected", do: func(c *functionstest.Crossplane) { c.Edit("hi", "config", "GREETING"); c.Reconcile(); c.Heal() }, edited: true, expect: states.Done},
	}},
	"DatabaseCluster": {claim: functionstest.DatabaseCluster(functionstest.Production), steps: []step{
		{name: "Starts", expect: states.Working},
		{name: "ServersUp", do: func(c *functionstest.Crossplane) { c.Heal("postgresql") }, expect: states.Working},
		{name: "Runs", do: heal, expect: states.Done},
		{name: "ServerDown", do: set("postgresql", servers), expect: states.Degraded},
		{name: "ServerBack", do: heal, expect: states.Done},
		{name: "StandbyLags", do: func(c *functionstest.Crossplane) {
			c.ReportCluster(func(r *instance.Cluster) { r.Standbys[0].Lagging = true })
		}, expect: states.Degraded, serves: true},
		{name: "StandbyCaughtUp", do: func(c *functionstest.Crossplane) {
			c.ReportCluster(func(r *instance.Cluster) { r.Standbys[0].Lagging = false })
		}, expect: states.Done, serves: true},
		{name: "Scales", do: edit(5, "size"), edited: true, expect: states.Working},
		{name: "Scaled", do: heal, expect: states.Done},
		{name: "Upgrades", do: edit("17.4", "version"), edited: true, expect: states.Working},
		{name: "Upgraded", do: heal, expect: states.Done},
		{name: "Refused", do: edit("1Gi", "storageSize"), edited: true, expect: states.Failed},
		{name: "Undone", do: edit("20Gi", "storageSize"), edited: true, expect: states.Done},
		{name: "FallsAsleep", do: edit(true, "hibernated"), edited: true, expect: states.Working},
		{name: "Hibernates", do: heal, expect: states.Held},
		{name: "Wakes", do: edit(false, "hibernated"), edited: true, expect: states.Working},
		{name: "Woken", do: heal, expect: states.Done},
	}},
	"EcommercePlatform": {claim: functionstest.EcommercePlatform(functionstest.SmallShop), steps: []step{
		{name: "Starts", expect: states.Working},
		{name: "DatabaseRuns", do: func(c *functionstest.Crossplane) { c.Heal("database") }, expect: states.Working},
		{name: "Runs", do: heal, expect: states.Done},
		{name: "DatabaseLags", do: setNested("database", "Degraded", "Not following the primary: store-database-postgresql-1", "True"), expect: states.Degraded, serves: true},
		{name: "DatabaseCaughtUp", do: heal, expect: states.Done, serves: true},
		{name: "BackendDown", do: setNested("backend", "Degraded", "Waiting for web (Not all pods are ready)", "False"), expect: states.Degraded},
		{name: "BackendBack", do: heal, expect: states.Done},
		{name: "Edited", do: edit("back:2", "backend", "image"), edited: true, expect: states.Working},
		{name: "BackendFails", do: setNested("backend", "Failed", "no such image", "False"), expect: states.Failed},
		{name: "Corrected", do: func(c *functionstest.Crossplane) {
			c.Edit("back:3", "backend", "image")
			c.Reconcile()
			c.Heal()
		}, edited: true, expect: states.Done},
		{name: "Refused", do: edit([]any{map[string]any{"name": "prune", "schedule": "61 * * * *"}}, "backend", "cronJobs"), edited: true, expect: states.Failed},
		{name: "Undone", do: edit(nil, "backend", "cronJobs"), edited: true, expect: states.Done},
	}},
}

// passes is the number of reconciliations after which the state of a step no longer changes.
const passes = 8

// TestClaims: in each step of each claim's life the tools judge the claim as expected, also by
// the writes of its status in the middle of a reconciliation.
func TestClaims(t *testing.T) {
	exprs := fluxExpressions(t)
	var seen []states.State
	for name, life := range lives {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, life.claim)
			c.Serve("backup")
			before := states.Working
			for _, s := range life.steps {
				c.Written = watch(t, exprs, s, before)
				if s.do != nil {
					s.do(c)
				}
				for i := range passes {
					c.Reconcile()
					// Components that appear once others are healthy are healed too, if the step
					// heals the claim.
					if s.expect == states.Done && i < passes/2 && c.Phase() != "Running" {
						c.Heal()
					}
					if s.expect == states.Held && i < passes/2 {
						c.Heal()
					}
				}
				o := functionstest.Unstructured(c.Claim)
				if s.expect == states.Done && !kubectl(o, "Ready") {
					t.Errorf("%s is Done, and kubectl waits: %v", s.name, o.Object["status"])
				}
				if wrong := judge(t, exprs, o).wrong(s.expect); wrong != "" {
					t.Errorf("%s is %s: %s: %v", s.name, s.expect, wrong, o.Object["status"])
				}
				seen = append(seen, states.Of(t, name+" "+s.name, s.expect, o.DeepCopy()))
				before = s.expect
			}
			seen = append(seen, others(t, name, c)...)
		})
	}
	states.Compare(t, "testdata/states.yaml", *update, seen)
}

// watch returns a function that checks each write of the claim's status in a step. The tools may
// judge it as expected or as in progress, and in the first two reconciliations after a change
// that is no edit also as before.
func watch(t *testing.T, exprs map[string]expressions, s step, before states.Expectation) func(*structpb.Struct) {
	t.Helper()
	writes := 0
	const two = 4 // the writes of two reconciliations
	return func(claim *structpb.Struct) {
		writes++
		may := []states.Expectation{s.expect, states.Working}
		if !s.edited && writes <= two {
			may = append(may, before)
		}
		o := functionstest.Unstructured(claim)
		if s.serves && !strings.Contains(fmt.Sprint(o.Object["status"]), "status:True type:Ready") {
			t.Errorf("%s, write %d: it is not Ready: %v", s.name, writes, o.Object["status"])
		}
		if serves := slices.ContainsFunc(may, func(e states.Expectation) bool {
			return e == states.Done || e == states.Degraded || e == states.Held
		}); !serves && kubectl(o, "Ready") {
			t.Errorf("%s, write %d: kubectl wait returns, and it is %s: %v", s.name, writes, s.expect, o.Object["status"])
		}
		if s.edited && kubectl(o, "ConfigReady") && s.expect == states.Working {
			t.Errorf("%s, write %d: kubectl wait returns for ConfigReady of the generation before: %v", s.name, writes, o.Object["status"])
		}
		if wrong := judge(t, exprs, o).wrong(may...); wrong != "" {
			t.Errorf("%s, write %d: from %s to %s, %s: %v", s.name, writes, before, s.expect, wrong, o.Object["status"])
		}
	}
}

// others returns the states of a claim that only Crossplane or the API server causes: paused and
// being deleted.
func others(t *testing.T, name string, c *functionstest.Crossplane) []states.State {
	t.Helper()
	claim := functionstest.Unstructured(c.Claim)
	paused := claim.DeepCopy()
	paused.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	deleted := claim.DeepCopy()
	deleted.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2024-01-01T00:00:00Z"
	return []states.State{
		states.Of(t, name+" Paused", states.Held, paused),
		states.Of(t, name+" Deleted", states.Deleting, deleted),
	}
}
