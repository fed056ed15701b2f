package compose

import (
	"fmt"
	"maps"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// refuser simulates a cluster that refuses a component, and Crossplane, which composes the claim
// again when its status has changed, or after the response's time to live.
type refuser struct {
	SystemSource

	t      *testing.T
	intent Intent

	now     time.Time
	edits   int
	status  map[string]any
	refuses bool
	conf    *structpb.Struct

	// generation of the claim changes with each edit, and when Crossplane writes other references.
	generation int
	refs       []any

	passes, tries, writes int
}

func (r *refuser) Now() time.Time { return r.now }

func (r *refuser) synced() string {
	for _, c := range r.status["conditions"].([]any) {
		if f := c.(map[string]any); f["type"] == "Synced" {
			return f["status"].(string)
		}
	}
	return ""
}

// pass composes the claim once, and returns the time until the next pass.
func (r *refuser) pass() time.Duration {
	r.passes++
	observed := map[string]*structpb.Struct{}
	if r.conf != nil {
		observed["conf"] = r.conf
	}
	req := request(r.t, r.generation, r.status, observed)
	if r.conf == nil {
		req.RequiredResources = map[string]*fnv1.Resources{"existing/conf": nil}
	}
	spec := child(req.GetObserved().GetComposite().GetResource(), "spec")
	spec.Fields["image"] = structpb.NewStringValue(fmt.Sprintf("shop:%d", r.edits))
	child(spec, "crossplane").Fields["resourceRefs"] = listOf(r.t, r.refs)
	rsp := Respond(req, r.intent, r)
	before := r.status
	desired := map[string]*structpb.Struct{}
	for name, d := range rsp.GetDesired().GetResources() {
		desired[name] = d.GetResource()
	}
	refs := references(desired)
	hasOthers := !cmp.Equal(refs, r.refs)
	if hasOthers {
		r.refs, r.generation = refs, r.generation+1
		r.writes++
	}
	want := rsp.GetDesired().GetResources()["conf"].GetResource()
	condition := map[string]any{"type": "Synced", "status": "True", "observedGeneration": r.generation}
	isTry := want != nil && (r.conf == nil || !isApplied(want, r.conf))
	if isTry {
		r.tries++
	}
	if isTry && r.refuses {
		r.status = map[string]any{}
		maps.Copy(r.status, before)
		condition["status"], condition["message"] = "False", `cannot compose resources: cannot apply composed resource "conf": exceeded quota`
	} else {
		if want != nil {
			r.conf = stored(want)
		}
		r.status = rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().AsMap()
	}
	r.status["conditions"] = []any{condition}
	ttl := rsp.GetMeta().GetTtl().AsDuration()
	if changed := !cmp.Equal(before, r.status); changed || hasOthers {
		if changed {
			r.writes++
		}
		ttl = 100 * time.Millisecond
	}
	return ttl
}

func listOf(t *testing.T, values []any) *structpb.Value {
	t.Helper()
	l, err := structpb.NewList(values)
	if err != nil {
		t.Fatal(err)
	}
	return structpb.NewListValue(l)
}

// goOn runs passes until done returns true, or for the time most, and returns the time that has
// passed.
func (r *refuser) goOn(most time.Duration, done func() bool) time.Duration {
	start := r.now
	for r.now.Sub(start) < most && !done() {
		r.now = r.now.Add(r.pass())
	}
	return r.now.Sub(start)
}

// TestRefusedComponentIsTriedLessOften: each attempt to apply what the API server refuses is a
// write that begins the next pass. Attempts without a pause would open the claim's circuit breaker.
// Of a component that does not exist yet each attempt writes its reference, and the next pass
// removes that.
func TestRefusedComponentIsTriedLessOften(t *testing.T) {
	for name, tc := range map[string]struct {
		existing *structpb.Struct
		// writes is the number of writes for each attempt.
		writes int
		// tries is the number of attempts in the first 30 s: one more and one less is well, too.
		tries int
	}{
		"Change":   {existing: observe(Component{Object: configMap("conf", "old")}), writes: 2, tries: 6},
		"Creation": {writes: 4, tries: 1},
	} {
		t.Run(name, func(t *testing.T) { refusedIsTriedLessOften(t, tc.existing, tc.writes, tc.tries) })
	}
}

func refusedIsTriedLessOften(t *testing.T, existing *structpb.Struct, writes, tries int) {
	conf := Component{Name: "conf", Object: configMap("conf", "new")}
	r := &refuser{
		t: t, intent: planned(&Plan{Components: []Component{conf}}),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), generation: 2, refuses: true,
		status: map[string]any{"phase": "Running", "readyGeneration": 1, "conditions": []any{}},
		conf:   existing,
	}
	never := func() bool { return false }
	isThere := func() bool { return r.conf != nil && isApplied(encoded(conf), r.conf) }

	r.goOn(30*time.Second, never)
	if r.tries < tries-1 || r.tries > tries+1 {
		t.Errorf("in the first 30 s it was tried %d times, want about %d", r.tries, tries)
	}
	r.goOn(20*time.Minute, never)
	before := *r
	r.goOn(10*time.Minute, never)
	if tries := r.tries - before.tries; tries < 9 || tries > 12 {
		t.Errorf("in ten minutes, after 20 of them, it was tried %d times, want about every minute", tries)
	}
	if got, most := r.writes-before.writes, writes*(r.tries-before.tries)+writes; got > most {
		t.Errorf("in ten minutes the claim was written %d times, want %d at most", got, most)
	}
	if got := r.status["message"]; got != "Waiting for conf (The API server refuses it: exceeded quota)" {
		t.Errorf("between two tries the claim says %q", got)
	}

	r.edits++
	r.generation++
	tries = r.tries
	if r.goOn(time.Minute, func() bool { return r.tries > tries }) > time.Second {
		t.Error("an edit was not tried at once")
	}
	r.goOn(time.Minute, never)

	r.refuses = false
	if took := r.goOn(time.Hour, isThere); took > 62*time.Second {
		t.Errorf("what the API server takes now was applied after %s", took)
	}
	r.goOn(time.Minute, never)
	if _, ok := r.status["refusal"]; ok || r.synced() != "True" {
		t.Errorf("what was refused once is still in the status: %v", r.status)
	}
}

// TestRefusalOfReview: a review has no time, so a component that was refused is applied in it
// without a pause.
func TestRefusalOfReview(t *testing.T) {
	conf := Component{Name: "conf", Object: configMap("conf", "new")}
	spec := (&Claim{composite: request(t, 2, nil, nil).GetObserved().GetComposite().GetResource()}).specDigest()
	status := map[string]any{"phase": "Failed", "refusal": map[string]any{
		"component": "conf", "message": "exceeded quota", "specDigest": spec, "firstTime": "2026-01-01T00:00:00Z", "lastTime": "2026-01-01T00:00:00Z",
	}}
	req := request(t, 2, status, map[string]*structpb.Struct{"conf": observe(Component{Object: configMap("conf", "old")})})
	rsp := Respond(req, planned(&Plan{Components: []Component{conf}}), ReviewSource{})
	want := map[string]*fnv1.Resource{"conf": {Resource: encoded(conf), Ready: fnv1.Ready_READY_FALSE}}
	if diff := cmp.Diff(want, rsp.GetDesired().GetResources(), cmp.Comparer(proto.Equal)); diff != "" {
		t.Errorf("Respond(): -want, +got:\n%s", diff)
	}
}
