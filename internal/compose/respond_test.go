package compose

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/health"
)

func condition(typ string, st fnv1.Status, reason, message string) *fnv1.Condition {
	c := &fnv1.Condition{Type: typ, Status: st, Reason: reason, Target: fnv1.Target_TARGET_COMPOSITE.Enum()}
	if message != "" {
		c.Message = &message
	}
	return c
}

func TestRespond(t *testing.T) {
	const (
		yes = fnv1.Status_STATUS_CONDITION_TRUE
		no  = fnv1.Status_STATUS_CONDITION_FALSE
	)
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	web := Component{Name: "web", Object: deployment("web", "web:1"), After: []string{"db"}}
	// Package health determines these messages.
	unready := health.Of(observe(db)).Message
	missing := health.OfMissing(applied(t, db.Object)).Message
	accepted := condition("Accepted", yes, "Accepted", "")
	pruned := condition("Pruned", yes, "Pruned", "")
	notStalled := condition("Stalled", no, "NotStalled", "")
	xr := func(t *testing.T, status map[string]any) *structpb.Struct {
		t.Helper()
		status = maps.Clone(status)
		status["observedGeneration"] = 0 // There is no condition Ready yet.
		return mustStruct(t, map[string]any{"apiVersion": "apps.example.com/v1", "kind": "WebApp", "status": status})
	}

	type want struct {
		ready      fnv1.Ready
		resources  map[string]fnv1.Ready
		conditions []*fnv1.Condition
		status     map[string]any
		ttl        time.Duration
	}
	const denied = fnv1.Ready_READY_FALSE
	reportedStatus := map[string]any{"phase": "Running", "readyGeneration": 1}
	cases := map[string]struct {
		reason   string
		plan     *Plan
		status   map[string]any
		observed map[string]*structpb.Struct
		want     want
	}{
		"Withheld": {
			reason:   "While something is not healthy the claim is not ready: the status says what.",
			plan:     &Plan{Components: []Component{db, web}},
			observed: map[string]*structpb.Struct{},
			want: want{
				ready:      denied,
				resources:  map[string]fnv1.Ready{"db": fnv1.Ready_READY_FALSE},
				conditions: []*fnv1.Condition{accepted, pruned, notStalled},
				status:     map[string]any{"phase": "Pending", "message": "Waiting for db (" + missing + ")"},
				ttl:        startTTL,
			},
		},
		"AllHealthy": {
			reason:   "When every component has become healthy the status says so first.",
			plan:     &Plan{Components: []Component{db, web}},
			status:   map[string]any{"phase": "Deploying"},
			observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "web": madeHealthy(observe(web))},
			want: want{
				ready:      denied,
				resources:  map[string]fnv1.Ready{"db": fnv1.Ready_READY_TRUE, "web": fnv1.Ready_READY_TRUE},
				conditions: []*fnv1.Condition{accepted, pruned, notStalled},
				status:     map[string]any{"phase": "Running", "readyGeneration": 1},
				ttl:        reportedTTL,
			},
		},
		"NoGeneration": {
			reason:   "Nor is it ready while the status does not say for which generation.",
			plan:     &Plan{Components: []Component{db}},
			status:   map[string]any{"phase": "Running"},
			observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db))},
			want: want{
				ready:      denied,
				resources:  map[string]fnv1.Ready{"db": fnv1.Ready_READY_TRUE},
				conditions: []*fnv1.Condition{accepted, pruned, notStalled},
				status:     map[string]any{"phase": "Running", "readyGeneration": 1},
				ttl:        reportedTTL,
			},
		},
		"AllReady": {
			reason:   "When the status says that all is healthy nothing overrides what Crossplane derives.",
			plan:     &Plan{Components: []Component{db, web}},
			status:   reportedStatus,
			observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "web": madeHealthy(observe(web))},
			want: want{
				resources:  map[string]fnv1.Ready{"db": fnv1.Ready_READY_TRUE, "web": fnv1.Ready_READY_TRUE},
				conditions: []*fnv1.Condition{accepted, pruned, notStalled},
				status:     map[string]any{"phase": "Running", "readyGeneration": 1},
				ttl:        settledTTL + spread("", settledSpread),
			},
		},
		"Kept": {
			reason:   "What is kept is not waited for, and a condition names it.",
			plan:     &Plan{Components: []Component{db}},
			status:   reportedStatus,
			observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "old": holding(stored(applied(t, configMap("old", ""))))},
			want: want{
				resources:  map[string]fnv1.Ready{"db": fnv1.Ready_READY_TRUE, "old": fnv1.Ready_READY_TRUE},
				conditions: []*fnv1.Condition{accepted, condition("Pruned", no, "HoldsData", "No longer part of the claim, but kept since they hold data: old"), notStalled},
				status:     map[string]any{"phase": "Running", "readyGeneration": 1},
				ttl:        settledTTL + spread("", settledSpread),
			},
		},
		"OwnConditions": {
			reason: "An intent's own conditions come after the kernel's.",
			plan: &Plan{Components: []Component{db}, Conditions: func(o Outcome) []Condition {
				return []Condition{PartReady("DbReady", o, "db"), PartReady("CacheReady", o, "cache")}
			}},
			observed: map[string]*structpb.Struct{"db": observe(db)},
			want: want{
				ready:     denied,
				resources: map[string]fnv1.Ready{"db": fnv1.Ready_READY_FALSE},
				conditions: []*fnv1.Condition{
					accepted, pruned, notStalled,
					condition("DbReady", no, "Waiting", ""),
					condition("CacheReady", yes, "Disabled", "Not part of this claim"),
				},
				status: map[string]any{"phase": "Deploying", "message": "Waiting for db (" + unready + ")"},
				ttl:    startTTL,
			},
		},
		"NothingDeclared": {
			reason:   "A claim that declares nothing is ready.",
			plan:     &Plan{},
			status:   reportedStatus,
			observed: map[string]*structpb.Struct{},
			want:     want{conditions: []*fnv1.Condition{accepted, pruned, notStalled}, status: map[string]any{"phase": "Running", "readyGeneration": 1}, ttl: settledTTL + spread("", settledSpread)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := Respond(request(t, 1, tc.status, tc.observed), planned(tc.plan), ReviewSource{})
			got := want{ready: rsp.GetDesired().GetComposite().GetReady(), resources: map[string]fnv1.Ready{}, conditions: rsp.GetConditions(), ttl: rsp.GetMeta().GetTtl().AsDuration()}
			for n, r := range rsp.GetDesired().GetResources() {
				got.resources[n] = r.GetReady()
			}
			got.status = tc.want.status
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), protocmp.Transform(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nRespond(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(xr(t, tc.want.status), rsp.GetDesired().GetComposite().GetResource(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRespond() composite: -want, +got:\n%s", tc.reason, diff)
			}
			if len(rsp.GetResults()) != 0 {
				t.Errorf("%s\nRespond(): want no results, got %v", tc.reason, rsp.GetResults())
			}
			if rsp.GetMeta().GetTag() != "tag" {
				t.Errorf("%s\nRespond(): the request's tag must come back, got %q", tc.reason, rsp.GetMeta().GetTag())
			}
		})
	}
}

// TestRespondTTL: after what time Crossplane calls again if nothing changes. The platform promises
// these numbers, so they are spelled out.
func TestRespondTTL(t *testing.T) {
	const (
		soon  = 5 * time.Second
		start = 4 * time.Second
	)
	later := settledTTL + spread("", settledSpread)
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	settled := map[string]*structpb.Struct{"db": madeHealthy(observe(db))}
	conditions := func(cs ...map[string]any) map[string]any {
		list := make([]any, len(cs))
		for i := range cs {
			list[i] = cs[i]
		}
		return map[string]any{"phase": "Running", "readyGeneration": 1, "observedGeneration": 1, "conditions": list}
	}
	ready := map[string]any{"type": "Ready", "status": "True"}
	responsive := func(status string) map[string]any { return map[string]any{"type": "Responsive", "status": status} }

	cases := map[string]struct {
		reason   string
		status   map[string]any
		observed map[string]*structpb.Struct
		want     time.Duration
	}{
		"NothingExists":        {reason: "What starts is looked at soon: its events may be dropped.", want: start},
		"Starts":               {reason: "So is what is under way.", observed: map[string]*structpb.Struct{"db": observe(db)}, want: start},
		"Failed":               {reason: "And what failed.", observed: map[string]*structpb.Struct{"db": broken(observe(db))}, want: start},
		"Settled":              {reason: "What has settled is looked at now and then.", status: conditions(), observed: settled, want: later},
		"NotTold":              {reason: "What has settled and does not say so yet is called ready as soon as it does.", observed: settled, want: time.Second},
		"SettledNoResponsive":  {reason: "Other conditions say nothing of its events.", status: conditions(ready), observed: settled, want: later},
		"SettledResponsive":    {reason: "Nor is it looked at more often when they arrive.", status: conditions(ready, responsive("True")), observed: settled, want: later},
		"SettledUnknown":       {reason: "Unknown is not False.", status: conditions(ready, responsive("Unknown")), observed: settled, want: later},
		"SettledNotResponsive": {reason: "While its events are dropped it is looked at soon, however well it is.", status: conditions(ready, responsive("False")), observed: settled, want: soon},
		"StartsNotResponsive":  {reason: "Both together are no sooner than soon.", status: conditions(responsive("False")), observed: map[string]*structpb.Struct{"db": observe(db)}, want: soon},
		"ConditionsUnreadable": {reason: "Conditions that are none say nothing.", status: map[string]any{"phase": "Running", "readyGeneration": 1, "conditions": "Responsive"}, observed: settled, want: later},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := Respond(request(t, 1, tc.status, tc.observed), planned(&Plan{Components: []Component{db}}), ReviewSource{})
			if got := rsp.GetMeta().GetTtl().AsDuration(); got != tc.want {
				t.Errorf("%s\nRespond() TTL: want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	const yes, no = fnv1.Status_STATUS_CONDITION_TRUE, fnv1.Status_STATUS_CONDITION_FALSE
	invalid := Invalidf("storageSize may not shrink: 20Gi → 10Gi")
	ours := errors.New("cannot compose: a bug")
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	existing := map[string]*structpb.Struct{"web": madeHealthy(observe(web))}

	claimStatus := map[string]any{"phase": "Running", "conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "reason": "Available"},
		map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess"},
		map[string]any{"type": "Responsive", "status": "True", "reason": "X"},
		map[string]any{"type": "Accepted", "status": "True", "reason": "Accepted"},
		map[string]any{"type": "Pruned", "status": "False", "reason": "HoldsData", "message": "kept: a"},
		map[string]any{"type": "DatabaseReady", "status": "True", "reason": "Healthy"},
		map[string]any{"type": "CacheReady", "status": "Unknown", "reason": "FatalError"},
	}}

	type want struct {
		severity   fnv1.Severity
		reason     string
		ready      fnv1.Ready
		conditions []*fnv1.Condition
		status     map[string]any
	}
	cases := map[string]struct {
		reason   string
		err      error
		status   map[string]any
		observed map[string]*structpb.Struct
		text     string
		want     want
	}{
		"InvalidAndNothingExists": {
			reason: "There is nothing to protect, so the claim itself can say Failed and why.",
			err:    invalid,
			text:   "storageSize may not shrink: 20Gi → 10Gi",
			want: want{
				severity: fnv1.Severity_SEVERITY_WARNING, reason: "Invalid", ready: fnv1.Ready_READY_FALSE,
				conditions: []*fnv1.Condition{condition("Accepted", no, "Invalid", "storageSize may not shrink: 20Gi → 10Gi"), condition("Stalled", yes, "Invalid", "storageSize may not shrink: 20Gi → 10Gi")},
				status:     map[string]any{"phase": "Failed", "observedGeneration": 0, "message": "storageSize may not shrink: 20Gi → 10Gi"},
			},
		},
		"InvalidAndSomethingExists": {
			reason:   "A fatal result is the only one with which Crossplane applies and removes nothing. The claim's own conditions are repeated, Crossplane's and unknown ones are not.",
			err:      invalid,
			status:   claimStatus,
			observed: existing,
			text:     "storageSize may not shrink: 20Gi → 10Gi",
			want: want{
				severity: fnv1.Severity_SEVERITY_FATAL, reason: "Invalid",
				conditions: []*fnv1.Condition{
					condition("Accepted", no, "Invalid", "storageSize may not shrink: 20Gi → 10Gi"), condition("Stalled", yes, "Invalid", "storageSize may not shrink: 20Gi → 10Gi"),
					condition("Pruned", no, "HoldsData", "kept: a"),
					condition("DatabaseReady", fnv1.Status_STATUS_CONDITION_TRUE, "Healthy", ""),
				},
			},
		},
		"WrappedInvalid": {
			reason: "An error of the claim stays one when a caller adds facts to it.",
			err:    fmt.Errorf("cannot compose the database: %w", invalid),
			text:   "cannot compose the database: storageSize may not shrink: 20Gi → 10Gi",
			want: want{
				severity: fnv1.Severity_SEVERITY_WARNING, reason: "Invalid", ready: fnv1.Ready_READY_FALSE,
				conditions: []*fnv1.Condition{condition("Accepted", no, "Invalid", "cannot compose the database: storageSize may not shrink: 20Gi → 10Gi"), condition("Stalled", yes, "Invalid", "cannot compose the database: storageSize may not shrink: 20Gi → 10Gi")},
				status:     map[string]any{"phase": "Failed", "observedGeneration": 0, "message": "cannot compose the database: storageSize may not shrink: 20Gi → 10Gi"},
			},
		},
		"OursAndNothingExists": {
			reason: "Our own error is fatal always: trying again may help.",
			err:    ours,
			text:   "cannot compose: a bug",
			want: want{
				severity: fnv1.Severity_SEVERITY_FATAL, reason: "InternalError",
				conditions: []*fnv1.Condition{condition("Accepted", no, "InternalError", "cannot compose: a bug"), condition("Stalled", yes, "InternalError", "cannot compose: a bug")},
			},
		},
		"OursAndSomethingExists": {
			reason:   "And it leaves everything running.",
			err:      ours,
			status:   claimStatus,
			observed: existing,
			text:     "cannot compose: a bug",
			want: want{
				severity: fnv1.Severity_SEVERITY_FATAL, reason: "InternalError",
				conditions: []*fnv1.Condition{
					condition("Accepted", no, "InternalError", "cannot compose: a bug"), condition("Stalled", yes, "InternalError", "cannot compose: a bug"),
					condition("Pruned", no, "HoldsData", "kept: a"),
					condition("DatabaseReady", fnv1.Status_STATUS_CONDITION_TRUE, "Healthy", ""),
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, 2, tc.status, tc.observed)
			for how, rsp := range map[string]*fnv1.RunFunctionResponse{
				"Respond": Respond(req, refusing(tc.err), ReviewSource{}),
				"Refuse":  Refuse(req, tc.err),
			} {
				if diff := cmp.Diff(
					[]*fnv1.Result{{Severity: tc.want.severity, Message: tc.text, Reason: &tc.want.reason, Target: fnv1.Target_TARGET_COMPOSITE.Enum()}},
					rsp.GetResults(), protocmp.Transform()); diff != "" {
					t.Errorf("%s\n%s() results: -want, +got:\n%s", tc.reason, how, diff)
				}
				if diff := cmp.Diff(tc.want.conditions, rsp.GetConditions(), protocmp.Transform()); diff != "" {
					t.Errorf("%s\n%s() conditions: -want, +got:\n%s", tc.reason, how, diff)
				}
				if got := rsp.GetMeta().GetTtl().AsDuration(); got != startTTL {
					t.Errorf("%s\n%s() TTL: want %v, got %v", tc.reason, how, startTTL, got)
				}
				if got := rsp.GetDesired().GetComposite().GetReady(); got != tc.want.ready {
					t.Errorf("%s\n%s() ready: want %v, got %v", tc.reason, how, tc.want.ready, got)
				}
				if len(rsp.GetDesired().GetResources()) != 0 {
					t.Errorf("%s\n%s() must apply nothing, got %v", tc.reason, how, names(rsp.GetDesired().GetResources()))
				}
				var status *structpb.Struct
				if tc.want.status != nil {
					status = mustStruct(t, tc.want.status)
				}
				if diff := cmp.Diff(status, rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue(), protocmp.Transform()); diff != "" {
					t.Errorf("%s\n%s() status: -want, +got:\n%s", tc.reason, how, diff)
				}
			}
		})
	}
}

// TestRespondInPipeline: another function runs before this one.
func TestRespondInPipeline(t *testing.T) {
	other := mustStruct(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "other"}})
	cases := map[string]struct {
		reason    string
		composite *structpb.Struct
		want      *structpb.Struct
	}{
		"OtherStatus": {
			reason:    "What it wrote to the claim's status stays beside ours.",
			composite: mustStruct(t, map[string]any{"status": map[string]any{"cost": "3 EUR", "phase": "Theirs"}}),
			want: mustStruct(t, map[string]any{
				"apiVersion": "apps.example.com/v1", "kind": "WebApp",
				"status": map[string]any{"cost": "3 EUR", "phase": "Running", "readyGeneration": 1, "observedGeneration": 0},
			}),
		},
		"EmptyComposite": {
			reason:    "A composite without a field is what many functions send.",
			composite: &structpb.Struct{},
			want:      mustStruct(t, map[string]any{"apiVersion": "apps.example.com/v1", "kind": "WebApp", "status": map[string]any{"phase": "Running", "readyGeneration": 1, "observedGeneration": 0}}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, 1, nil, map[string]*structpb.Struct{"conf": observe(Component{Object: configMap("conf", "")})})
			req.Context = mustStruct(t, map[string]any{"key": "value"})
			req.Desired = &fnv1.State{
				Composite: &fnv1.Resource{Resource: tc.composite, ConnectionDetails: map[string][]byte{"k": []byte("v")}},
				Resources: map[string]*fnv1.Resource{"other": {Resource: other, Ready: fnv1.Ready_READY_TRUE}},
			}
			before := proto.CloneOf(req)

			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s\nRespond() panicked: %v", tc.reason, p)
				}
			}()
			rsp := Respond(req, planned(&Plan{Components: []Component{{Name: "conf", Object: configMap("conf", "")}}}), ReviewSource{})
			if diff := cmp.Diff(tc.want, rsp.GetDesired().GetComposite().GetResource(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRespond() composite: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]string{"conf", "other"}, names(rsp.GetDesired().GetResources())); diff != "" {
				t.Errorf("Its resources stay: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(req.GetContext(), rsp.GetContext(), protocmp.Transform()); diff != "" {
				t.Errorf("Its context stays: -want, +got:\n%s", diff)
			}
			if string(rsp.GetDesired().GetComposite().GetConnectionDetails()["k"]) != "v" {
				t.Errorf("Its connection details stay")
			}
			if diff := cmp.Diff(before, req, protocmp.Transform()); diff != "" {
				t.Errorf("The request is not ours to change; a call that is too late still reads it: -before, +after:\n%s", diff)
			}
		})
	}
}

// TestRespondStatusError: a status that cannot be encoded is an internal error, and nothing is
// applied.
func TestRespondStatusError(t *testing.T) {
	plan := &Plan{
		Components: []Component{{Name: "conf", Object: configMap("conf", "")}},
		Status:     func(Outcome) any { return &struct{ C chan int }{make(chan int)} },
	}
	rsp := Respond(request(t, 1, nil, nil), planned(plan), ReviewSource{})
	if len(rsp.GetResults()) != 1 || rsp.GetResults()[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
		t.Errorf("want one fatal result, got %v", rsp.GetResults())
	}
	if len(rsp.GetDesired().GetResources()) != 0 {
		t.Errorf("want nothing applied, got %v", names(rsp.GetDesired().GetResources()))
	}
}

// TestRefuseWithoutClaim: even an empty request causes no panic.
func TestRefuseWithoutClaim(t *testing.T) {
	for name, req := range map[string]*fnv1.RunFunctionRequest{"Nil": nil, "Empty": {}} {
		t.Run(name, func(t *testing.T) {
			rsp := Refuse(req, errors.New("cannot compose"))
			if got := rsp.GetResults()[0].GetMessage(); got != "cannot compose" {
				t.Errorf("want the error as result, got %q", got)
			}
			if diff := cmp.Diff(durationpb.New(startTTL), rsp.GetMeta().GetTtl(), protocmp.Transform()); diff != "" {
				t.Errorf("It is tried again soon: -want, +got:\n%s", diff)
			}
		})
	}
}
