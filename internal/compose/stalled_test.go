package compose

import (
	"errors"
	"slices"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// crossplane writes a claim as Crossplane v2.4 does: first its status with the old conditions, and
// then the conditions.
type crossplane struct {
	generation int
	status     map[string]any
}

// pass calls the function with the observed objects, and returns the response and the status of the
// claim after each of the two writes.
func (x *crossplane) pass(t *testing.T, observed map[string]*structpb.Struct, intent Intent) (rsp *fnv1.RunFunctionResponse, seen []map[string]any) {
	t.Helper()
	rsp = Respond(request(t, x.generation, x.status, observed), intent, ReviewSource{})
	was, _ := x.status["conditions"].([]any)
	fatal := slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
	if !fatal {
		x.status = rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().AsMap()
		if len(was) > 0 {
			x.status["conditions"] = was
		}
		seen = append(seen, x.copy(t))
	}
	next := slices.Clone(was)
	set := func(c map[string]any) {
		next = slices.DeleteFunc(next, func(o any) bool { return o.(map[string]any)["type"] == c["type"] })
		next = append(next, c)
	}
	word := map[bool]string{true: "True", false: "False"}
	for _, c := range rsp.GetConditions() {
		set(map[string]any{"type": c.GetType(), "status": word[c.GetStatus() == fnv1.Status_STATUS_CONDITION_TRUE], "reason": c.GetReason(), "message": c.GetMessage()})
	}
	set(map[string]any{"type": "Synced", "status": word[!fatal], "observedGeneration": x.generation})
	if !fatal {
		ready := rsp.GetDesired().GetComposite().GetReady() != fnv1.Ready_READY_FALSE
		for _, r := range rsp.GetDesired().GetResources() {
			ready = ready && (r.GetReady() == fnv1.Ready_READY_TRUE || rsp.GetDesired().GetComposite().GetReady() == fnv1.Ready_READY_TRUE)
		}
		set(map[string]any{"type": "Ready", "status": word[ready], "observedGeneration": x.generation})
	}
	if x.status == nil {
		x.status = map[string]any{}
	}
	x.status["conditions"] = next
	return rsp, append(seen, x.copy(t))
}

func (x *crossplane) copy(t *testing.T) map[string]any {
	t.Helper()
	return mustStruct(t, x.status).AsMap()
}

// conditionOf returns the status of a condition, or "" if it does not exist.
func conditionOf(status map[string]any, typ string) string {
	for _, c := range status["conditions"].([]any) {
		if c := c.(map[string]any); c["type"] == typ {
			return c["status"].(string)
		}
	}
	return ""
}

// TestReadyStays: only an unhealthy component makes a claim unready that is Ready. Nothing else
// does, not even for one pass.
func TestReadyStays(t *testing.T) {
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	healthy := map[string]*structpb.Struct{"db": madeHealthy(observe(db))}
	phased := func(phase Phase) Intent {
		return planned(&Plan{Components: []Component{db}, Status: func(o Outcome) any {
			return &struct {
				Phase Phase `json:"phase"`
				Ready int64 `json:"readyGeneration"`
			}{phase, o.Common.ReadyGeneration}
		}})
	}
	x := &crossplane{generation: 1}
	for range 3 {
		x.pass(t, healthy, phased(Running))
	}
	if conditionOf(x.status, "Ready") != "True" {
		t.Fatalf("A healthy claim becomes Ready, got %v", x.status)
	}
	for _, s := range []struct {
		reason     string
		phase      Phase
		generation int
	}{
		{"A standby lags: the claim is degraded, and serves.", Degraded, 1},
		{"It has caught up.", Running, 1},
		{"The Composition has another revision, which changes nothing but the generation.", Running, 2},
	} {
		x.generation = s.generation
		for range 4 {
			_, seen := x.pass(t, healthy, phased(s.phase))
			for _, claim := range seen {
				if conditionOf(claim, "Ready") != "True" {
					t.Errorf("%s Ready must stay True, got %v", s.reason, claim)
				}
			}
		}
		if got := x.status["observedGeneration"]; got != float64(s.generation) {
			t.Errorf("%s want observedGeneration %d, got %v", s.reason, s.generation, got)
		}
	}
}

// TestObservedGeneration: status.observedGeneration has a generation only once the conditions refer
// to it, after each of Crossplane's two writes.
func TestObservedGeneration(t *testing.T) {
	one, two := Component{Name: "web", Object: deployment("web", "web:1")}, Component{Name: "web", Object: deployment("web", "web:2")}
	objects := func(o *structpb.Struct) map[string]*structpb.Struct {
		if o == nil {
			return nil
		}
		return map[string]*structpb.Struct{"web": o}
	}
	x := &crossplane{}
	before := kstatus.InProgressStatus
	for _, s := range []struct {
		reason     string
		generation int
		component  Component
		observed   *structpb.Struct
		want       float64
		judged     kstatus.Status
	}{
		{"Nothing exists yet.", 1, one, nil, 0, kstatus.InProgressStatus},
		{"It starts.", 1, one, observe(one), 0, kstatus.InProgressStatus},
		{"It is healthy.", 1, one, madeHealthy(observe(one)), 1, kstatus.CurrentStatus},
		{"An edit is under way.", 2, two, madeHealthy(observe(one)), 1, kstatus.InProgressStatus},
		{"It rolls.", 2, two, observe(two), 1, kstatus.InProgressStatus},
		{"It has failed.", 2, two, broken(observe(two)), 2, kstatus.FailedStatus},
		{"The edit is undone.", 3, one, broken(observe(two)), 2, kstatus.InProgressStatus},
		{"All is as it was.", 3, one, madeHealthy(observe(one)), 3, kstatus.CurrentStatus},
		{"A pod is gone: nothing was asked for, and nothing has failed.", 3, one, observe(one), 3, kstatus.InProgressStatus},
		{"It cannot come back.", 3, one, broken(observe(one)), 3, kstatus.FailedStatus},
		{"It is back.", 3, one, madeHealthy(observe(one)), 3, kstatus.CurrentStatus},
	} {
		edited := x.generation != s.generation
		x.generation = s.generation
		if edited && x.generation > 1 && x.judged(t) != kstatus.InProgressStatus {
			t.Errorf("%s Before any pass: want InProgress, got %s: %v", s.reason, x.judged(t), x.status)
		}
		for i := range 4 {
			_, seen := x.pass(t, objects(s.observed), planned(&Plan{Components: []Component{s.component}}))
			for _, claim := range seen {
				got := (&crossplane{generation: x.generation, status: claim}).judged(t)
				// Changes without an edit take up to two passes to show.
				known := got == s.judged || got == kstatus.InProgressStatus || !edited && i < 2 && got == before
				if !known {
					t.Errorf("%s pass %d: want %s, got %s: %v", s.reason, i+1, s.judged, got, claim)
				}
			}
		}
		if got := x.judged(t); got != s.judged {
			t.Errorf("%s want %s, got %s: %v", s.reason, s.judged, got, x.status)
		}
		if got := x.status["observedGeneration"]; got != s.want {
			t.Errorf("%s want observedGeneration %v, got %v", s.reason, s.want, got)
		}
		before = s.judged
	}
}

// judged returns the status that kstatus computes for the claim.
func (x *crossplane) judged(t *testing.T) kstatus.Status {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.example.com/v1", "kind": "WebApp", "metadata": map[string]any{"name": claimName, "generation": int64(x.generation)},
		"status": integers(x.status),
	}}
	r, err := kstatus.Compute(u)
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

// integers converts whole numbers to int64, as a client decodes them.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, f := range v {
			out[k] = integers(f)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, f := range v {
			out[i] = integers(f)
		}
		return out
	case float64:
		return int64(v)
	case int:
		return int64(v)
	default:
		return v
	}
}

// TestStalledFollows: condition Stalled changes in the pass after the phase, as Ready does.
func TestStalledFollows(t *testing.T) {
	const yes, no = fnv1.Status_STATUS_CONDITION_TRUE, fnv1.Status_STATUS_CONDITION_FALSE
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	good, bad := madeHealthy(observe(web)), broken(observe(web))
	at := func(generation int) []any {
		return []any{
			map[string]any{"type": "Stalled", "status": "True", "reason": "Failed", "message": "before"},
			map[string]any{"type": "Synced", "status": "True", "observedGeneration": generation},
		}
	}
	message := newMessage(t, web, bad)
	cases := map[string]struct {
		reason   string
		observed *structpb.Struct
		status   map[string]any
		want     *fnv1.Condition
	}{
		"Never":     {reason: "What is well is not stalled, with a reason that says nothing else.", observed: good, want: condition("Stalled", no, "NotStalled", "")},
		"FailsNow":  {reason: "The phase comes first.", observed: bad, status: map[string]any{"phase": "Deploying"}, want: condition("Stalled", no, "NotStalled", "")},
		"Failed":    {reason: "The condition says why, as the status does.", observed: bad, status: map[string]any{"phase": "Failed"}, want: condition("Stalled", yes, "Failed", message)},
		"HealsNow":  {reason: "And it stays until the phase is another one.", observed: good, status: map[string]any{"phase": "Failed", "conditions": at(2)}, want: condition("Stalled", yes, "Failed", "before")},
		"Edited":    {reason: "An edit is another try.", observed: good, status: map[string]any{"phase": "Failed", "conditions": at(1)}, want: condition("Stalled", no, "NotStalled", "")},
		"Healed":    {reason: "Not longer.", observed: good, status: map[string]any{"phase": "Running", "conditions": at(2)}, want: condition("Stalled", no, "NotStalled", "")},
		"Accepted2": {reason: "A claim that was refused is not stalled any more as soon as it is accepted: its phase was never Failed.", observed: good, status: map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Stalled", "status": "True", "reason": "Invalid", "message": "no"}}}, want: condition("Stalled", no, "NotStalled", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := Respond(request(t, 2, tc.status, map[string]*structpb.Struct{"web": tc.observed}), planned(&Plan{Components: []Component{web}}), ReviewSource{})
			for _, c := range rsp.GetConditions() {
				if c.GetType() != "Stalled" {
					continue
				}
				if diff := cmp.Diff(tc.want, c, protocmp.Transform()); diff != "" {
					t.Errorf("%s\nStalled: -want, +got:\n%s", tc.reason, diff)
				}
				return
			}
			t.Errorf("%s\nThere is no condition Stalled: %v", tc.reason, rsp.GetConditions())
		})
	}
}

// newMessage returns the message of a claim with this one component.
func newMessage(t *testing.T, c Component, observed *structpb.Struct) string {
	t.Helper()
	rsp := Respond(request(t, 1, nil, map[string]*structpb.Struct{c.Name: observed}), planned(&Plan{Components: []Component{c}}), ReviewSource{})
	return rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()["message"].GetStringValue()
}

// TestRefusedEdit: a fatal result cannot write the status, so one pass changes nothing and only
// reports the refused generation.
func TestRefusedEdit(t *testing.T) {
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	invalid := Invalidf("storageSize may not shrink: 20Gi → 10Gi")
	healthy := map[string]*structpb.Struct{"web": madeHealthy(observe(web))}
	good := planned(&Plan{Components: []Component{web}})

	cases := map[string]struct {
		reason string
		err    error
		edit   bool
		// fatal is whether the result of each pass is fatal.
		fatal    []bool
		observed float64
		ready    string
	}{
		"Edited":   {reason: "An edit that is refused.", err: invalid, edit: true, fatal: []bool{true, false, true, true}, observed: 2, ready: "False"},
		"Settings": {reason: "What was accepted and is refused since the settings changed was observed already, and goes on serving.", err: invalid, fatal: []bool{true, true, true}, observed: 1, ready: "True"},
		"Ours":     {reason: "With an error of ours nothing is applied, not even what is.", err: errors.New("cannot compose: a bug"), edit: true, fatal: []bool{true, true, true}, observed: 1, ready: "True"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := &crossplane{generation: 1}
			for range 4 {
				x.pass(t, healthy, good)
			}
			was := x.copy(t)
			if tc.edit {
				x.generation = 2
			}
			for i, fatal := range tc.fatal {
				rsp, seen := x.pass(t, healthy, refusing(tc.err))
				if got := rsp.GetResults()[0].GetSeverity() == fnv1.Severity_SEVERITY_FATAL; got != fatal {
					t.Errorf("%s pass %d: want a fatal result: %t, got %v", tc.reason, i+1, fatal, rsp.GetResults())
				}
				if fatal != (len(rsp.GetDesired().GetResources()) == 0) {
					t.Errorf("%s pass %d applies %v", tc.reason, i+1, names(rsp.GetDesired().GetResources()))
				}
				for _, claim := range seen {
					if got := (&crossplane{generation: x.generation, status: claim}).judged(t); tc.edit && got != kstatus.InProgressStatus && got != kstatus.FailedStatus {
						t.Errorf("%s pass %d: a refused edit is %s: %v", tc.reason, i+1, got, claim)
					}
				}
			}
			got := []any{x.status["observedGeneration"], conditionOf(x.status, "Ready"), conditionOf(x.status, "Stalled"), conditionOf(x.status, "Accepted"), x.status["phase"]}
			if diff := cmp.Diff([]any{tc.observed, tc.ready, "True", "False", was["phase"]}, got); diff != "" {
				t.Errorf("%s observedGeneration, Ready, Stalled, Accepted, phase: -want, +got:\n%s", tc.reason, diff)
			}
			// The edit is undone.
			if tc.edit {
				x.generation = 3
			}
			for range 4 {
				x.pass(t, healthy, good)
			}
			got = []any{x.status["observedGeneration"], conditionOf(x.status, "Ready"), conditionOf(x.status, "Stalled")}
			if diff := cmp.Diff([]any{float64(x.generation), "True", "False"}, got); diff != "" {
				t.Errorf("%s after it was undone: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRefusedClaim: a refused claim of which nothing exists writes its status itself.
func TestRefusedClaim(t *testing.T) {
	x := &crossplane{generation: 1}
	for i, want := range []float64{0, 1, 1} {
		_, seen := x.pass(t, nil, refusing(Invalidf("no")))
		if got := seen[0]["observedGeneration"]; got != want {
			t.Errorf("pass %d: want observedGeneration %v, got %v", i+1, want, got)
		}
	}
	if got := conditionOf(x.status, "Stalled"); got != "True" {
		t.Errorf("A refused claim is stalled, got %v", x.status)
	}
}

// TestRefusedInFlight: the generation of an edit during a pass can be in condition Ready before any
// pass has observed it. Once the edit is refused, Ready is False.
func TestRefusedInFlight(t *testing.T) {
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	observed := map[string]*structpb.Struct{"web": madeHealthy(observe(web))}
	x := &crossplane{generation: 2, status: map[string]any{
		"phase": "Running", "readyGeneration": 1, "observedGeneration": 1,
		"conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "observedGeneration": 2},
			map[string]any{"type": "Synced", "status": "True", "observedGeneration": 2},
		},
	}}
	refuse := func(*Claim) (*Plan, error) { return nil, Invalidf("replicas must not be 0") }
	for range 3 {
		x.pass(t, observed, refuse)
	}
	for _, v := range x.status["conditions"].([]any) {
		if c := v.(map[string]any); c["type"] == "Ready" && c["status"] != "False" {
			t.Errorf("want a refused generation not Ready, got %v", c)
		}
	}
	if x.status["observedGeneration"] != 2.0 {
		t.Errorf("want generation 2 observed, got %v", x.status["observedGeneration"])
	}
}
