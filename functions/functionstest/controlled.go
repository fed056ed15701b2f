package functionstest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/converge"
)

// controlled is what Crossplane knows of a claim. Its passes follow internal/controller/apiextensions/composite
// of crossplane/crossplane v2.4.0: reconciler.go and composition_functions.go.
type controlled struct {
	cluster *Cluster
	key     Key

	// busy is true during a pass, and again if another one follows at once. turn counts passes, so
	// that the time to live of a response ends with the next one, as in controller-runtime's queue.
	busy, again bool
	turn        int
	causes      []string

	// composed and required are what is watched, since the end of the last pass.
	composed map[Key]bool
	required []*fnv1.ResourceSelector

	// disowned is true once an update has changed conditions since the status was applied: the next
	// apply takes their ownership back, which changes managed fields.
	disowned bool

	bucket bucket

	// events is how many events the recorder has sent about the claim.
	events int
}

// eventBurst is how many events of a type client-go's recorder sends about an object: one more
// follows each five minutes.
const eventBurst = 25

func (x *controlled) dependsOn(k Key, object *structpb.Struct) bool {
	return k == x.key || x.composed[k] || slices.ContainsFunc(x.required, func(s *fnv1.ResourceSelector) bool { return selects(s, object) })
}

func (x *controlled) enqueue(cause string) {
	if !slices.Contains(x.causes, cause) {
		x.causes = append(x.causes, cause)
	}
	if x.busy {
		x.again = true
		return
	}
	x.busy = true
	x.turn++
	x.cluster.after(betweenTime, x.begin)
}

// begin begins a pass.
func (x *controlled) begin() {
	c := x.cluster
	slices.Sort(x.causes)
	p := &pass{Pass: &Pass{Claim: x.key, At: c.now, Causes: x.causes}, of: x}
	x.causes, x.again = nil, false
	c.Passes = append(c.Passes, p.Pass)
	p.xr = proto.CloneOf(c.objects[x.key].cached)
	p.before = proto.CloneOf(Get(p.xr, "status").GetStructValue())
	p.set("Responsive", "True", "WatchCircuitClosed")
	p.prepare()
}

// end ends a pass. The next one follows at once if there were events meanwhile.
func (x *controlled) end(ttl time.Duration) {
	x.busy = false
	if x.again {
		cause := x.causes[0]
		x.enqueue(cause)
		return
	}
	turn := x.turn
	x.cluster.after(ttl, func() {
		if x.turn == turn && !x.busy {
			x.enqueue("time to live")
		}
	})
}

// pass is a pass that is under way.
type pass struct {
	*Pass

	of     *controlled
	xr     *structpb.Struct // as the reconciler holds it
	before *structpb.Struct // its status as it was read
	rsp    *fnv1.RunFunctionResponse
}

// request sends a request and then continues.
func (p *pass) request(send, then func()) {
	p.of.cluster.after(requestTime, func() {
		send()
		then()
	})
}

// prepare sends the updates of a new claim: its finalizer, its composition and its label. Each
// replaces the object that the reconciler holds, with the condition Responsive.
func (p *pass) prepare() {
	updates := []struct {
		done  *structpb.Value
		write func(*structpb.Struct)
	}{
		{Get(p.xr, "metadata", "finalizers"), func(s *structpb.Struct) {
			Set(s, []any{"composite.apiextensions.crossplane.io"}, "metadata", "finalizers")
		}},
		{Get(p.xr, "spec", "crossplane", "compositionRevisionRef"), func(s *structpb.Struct) {
			Set(s, "composition", "spec", "crossplane", "compositionRef", "name")
			Set(s, "revision", "spec", "crossplane", "compositionRevisionRef", "name")
		}},
		{Get(p.xr, "metadata", "labels", "crossplane.io/composite"), func(s *structpb.Struct) {
			Set(s, p.Claim.Name, "metadata", "labels", "crossplane.io/composite")
		}},
	}
	for _, u := range updates {
		if u.done == nil {
			p.request(func() { p.update(u.write) }, p.prepare)
			return
		}
	}
	p.observe()
}

// update updates the claim and holds what the API server returns.
func (p *pass) update(change func(*structpb.Struct)) {
	c := p.of.cluster
	p.Updates++
	if c.write(p.Claim, func(s *structpb.Struct) *structpb.Struct { change(s); return s }) {
		p.Writes++
	}
	p.xr = proto.CloneOf(c.Object(p.Claim))
}

// observe reads the composed objects, from the API server where the cache has none, and calls the
// function.
func (p *pass) observe() {
	c := p.of.cluster
	observed := map[string]*fnv1.Resource{}
	for _, v := range Get(p.xr, "spec", "crossplane", "resourceRefs").GetListValue().GetValues() {
		k := Key{Kind: Get(v.GetStructValue(), "kind").GetStringValue(), Name: Get(v.GetStructValue(), "name").GetStringValue()}
		o := c.objects[k]
		if o == nil || o.cached == nil {
			p.Reads++
		}
		if o == nil {
			continue
		}
		read := o.cached
		if read == nil {
			read = o.live
		}
		observed[Get(read, "metadata", "annotations", "crossplane.io/composition-resource-name").GetStringValue()] = &fnv1.Resource{Resource: read}
	}
	c.after(time.Duration(p.Reads)*requestTime+callTime, func() { p.call(observed) })
}

func (p *pass) call(observed map[string]*fnv1.Resource) {
	c := p.of.cluster
	req := &fnv1.RunFunctionRequest{
		Meta:              &fnv1.RequestMeta{Tag: "tag"},
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: p.xr}, Resources: observed},
		Desired:           &fnv1.State{},
		RequiredResources: map[string]*fnv1.Resources{"settings": {}},
	}
	rsp, err := converge.Call(context.Background(), c.function, req, c.fetch)
	switch {
	case err != nil:
		c.t.Fatal(err)
	case len(rsp.GetResults()) > 0:
		c.t.Fatalf("%v is refused: %v", p.Claim, rsp.GetResults())
	}
	p.rsp, p.Objects = rsp, len(rsp.GetDesired().GetResources())
	p.request(p.reference, func() { p.apply(slices.Sorted(maps.Keys(rsp.GetDesired().GetResources()))) })
}

// reference applies the references to the composed objects.
func (p *pass) reference() {
	desired := p.rsp.GetDesired().GetResources()
	refs := make([]any, 0, len(desired))
	for _, n := range slices.Sorted(maps.Keys(desired)) {
		o := desired[n].GetResource()
		refs = append(refs, map[string]any{"apiVersion": Get(o, "apiVersion").GetStringValue(), "kind": Get(o, "kind").GetStringValue(), "name": Get(o, "metadata", "name").GetStringValue()})
	}
	p.applied(p.Claim, func(s *structpb.Struct) *structpb.Struct {
		Set(s, refs, "spec", "crossplane", "resourceRefs")
		return s
	})
}

func (p *pass) applied(k Key, change func(*structpb.Struct) *structpb.Struct) {
	p.Applies++
	if p.of.cluster.write(k, change) {
		p.Writes++
	}
}

// apply applies these components and those after them, one after the other.
func (p *pass) apply(components []string) {
	if len(components) == 0 {
		p.request(p.report, p.finish)
		return
	}
	p.request(func() {
		want := p.rsp.GetDesired().GetResources()[components[0]].GetResource()
		p.applied(keyOf(want), func(was *structpb.Struct) *structpb.Struct { return p.merged(components[0], want, was) })
	}, func() { p.apply(components[1:]) })
}

// merged returns an object after it was applied. What other clients have set stays.
func (p *pass) merged(component string, want, was *structpb.Struct) *structpb.Struct {
	next := proto.CloneOf(want)
	Set(next, component, "metadata", "annotations", "crossplane.io/composition-resource-name")
	Set(next, Get(p.xr, "metadata", "labels", "crossplane.io/composite").GetStringValue(), "metadata", "labels", "crossplane.io/composite")
	Set(next, []any{map[string]any{
		"apiVersion": Get(p.xr, "apiVersion").GetStringValue(), "kind": p.Claim.Kind, "name": p.Claim.Name, "uid": Get(p.xr, "metadata", "uid").GetStringValue(), "controller": true,
	}}, "metadata", "ownerReferences")
	if Get(next, "kind").GetStringValue() == "Deployment" && Get(next, "spec", "replicas") == nil {
		Set(next, 1, "spec", "replicas")
	}
	o := p.of.cluster.objects[keyOf(want)]
	for k, v := range Get(was, "metadata", "annotations").GetStructValue().GetFields() {
		if !slices.Contains(o.annotations, k) {
			Fields(next, "metadata", "annotations")[k] = v
		}
	}
	o.annotations = slices.Collect(maps.Keys(Get(want, "metadata", "annotations").GetStructValue().GetFields()))
	if was == nil {
		return next
	}
	for k, v := range Fields(was, "metadata") {
		if Get(next, "metadata", k) == nil {
			Fields(next, "metadata")[k] = v
		}
	}
	for _, k := range []string{"status", "data"} {
		if v := was.GetFields()[k]; v != nil && next.GetFields()[k] == nil {
			next.Fields[k] = v
		}
	}
	if v := Get(was, "spec", "crossplane"); v != nil {
		Fields(next, "spec")["crossplane"] = v
	}
	return next
}

// report applies the status, with the conditions that the reconciler holds.
func (p *pass) report() {
	held := Get(p.xr, "status", "conditions").GetListValue().GetValues()
	desired := proto.CloneOf(Get(p.rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue())
	p.applied(p.Claim, func(s *structpb.Struct) *structpb.Struct {
		conditions := Get(s, "status", "conditions").GetListValue().GetValues()
		for _, v := range held {
			conditions = withCondition(conditions, v)
		}
		if len(desired.GetFields()) == 0 && len(conditions) == 0 {
			return s // Applying no status where there is none is no write.
		}
		s.Fields["status"] = structpb.NewStructValue(proto.CloneOf(desired))
		if len(conditions) > 0 {
			Fields(s, "status")["conditions"] = structpb.NewListValue(&structpb.ListValue{Values: conditions})
		}
		if p.of.disowned {
			Set(s, []any{map[string]any{"manager": fmt.Sprint("pass ", p.of.turn)}}, "metadata", "managedFields")
		}
		return s
	})
	p.of.disowned = false
	p.xr = proto.CloneOf(p.of.cluster.Object(p.Claim))
}

// finish watches what the claim depends on now, records events, and updates the claim's conditions
// where its status has changed since it was read.
func (p *pass) finish() {
	x := p.of
	x.composed, x.required = map[Key]bool{}, nil
	for _, r := range p.rsp.GetDesired().GetResources() {
		x.composed[keyOf(r.GetResource())] = true
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			p.record()
		}
	}
	for _, sel := range p.rsp.GetRequirements().GetResources() {
		x.required = append(x.required, sel)
	}
	if x.turn == 1 {
		for range 3 {
			p.record() // The composition, its revision and the default were selected.
		}
	}
	for _, cond := range p.rsp.GetConditions() {
		status := "False"
		if cond.GetStatus() == fnv1.Status_STATUS_CONDITION_TRUE {
			status = "True"
		}
		p.setCondition(map[string]any{"type": cond.GetType(), "status": status, "reason": cond.GetReason(), "message": cond.GetMessage()})
	}
	p.set("Synced", "True", "ReconcileSuccess")
	ready := converge.Ready(p.rsp)
	p.set(string(ready.Type), string(ready.Status), string(ready.Reason))
	ttl := p.rsp.GetMeta().GetTtl().AsDuration()
	status := Get(p.xr, "status")
	if proto.Equal(p.before, status.GetStructValue()) {
		x.end(ttl)
		return
	}
	p.request(func() {
		writes := p.Writes
		p.update(func(s *structpb.Struct) { s.Fields["status"] = status })
		x.disowned = p.Writes > writes
	}, func() { x.end(ttl) })
}

// record records an event, unless the recorder drops it.
func (p *pass) record() {
	if p.of.events < eventBurst {
		p.of.events++
		p.Events++
	}
}

// set sets one of Crossplane's own conditions.
func (p *pass) set(typ, status, reason string) {
	p.setCondition(map[string]any{"type": typ, "status": status, "reason": reason, "observedGeneration": Get(p.xr, "metadata", "generation").GetNumberValue()})
}

// setCondition sets a condition. Its time stays if nothing else of it changes.
func (p *pass) setCondition(cond map[string]any) {
	now := proto.Clone(structpb.NewStringValue(p.of.cluster.time()))
	v, err := structpb.NewStruct(cond)
	if err != nil {
		p.of.cluster.t.Fatal(err)
	}
	conditions := Get(p.xr, "status", "conditions").GetListValue().GetValues()
	for _, was := range conditions {
		w := proto.CloneOf(was.GetStructValue())
		at := w.GetFields()["lastTransitionTime"]
		delete(w.GetFields(), "lastTransitionTime")
		if proto.Equal(w, v) {
			now = at
		}
	}
	if t, ok := now.(*structpb.Value); ok {
		v.Fields["lastTransitionTime"] = t
	}
	Fields(p.xr, "status")["conditions"] = structpb.NewListValue(&structpb.ListValue{Values: withCondition(conditions, structpb.NewStructValue(v))})
}

// withCondition returns conditions with one of them set.
func withCondition(conditions []*structpb.Value, v *structpb.Value) []*structpb.Value {
	out := slices.Clone(conditions)
	for i, was := range out {
		if Get(was.GetStructValue(), "type").GetStringValue() == Get(v.GetStructValue(), "type").GetStringValue() {
			out[i] = v
			return out
		}
	}
	return append(out, v)
}

// conditionOf returns the status of a condition of an object, or "".
func conditionOf(object *structpb.Struct, typ string) string {
	for _, v := range Get(object, "status", "conditions").GetListValue().GetValues() {
		if Get(v.GetStructValue(), "type").GetStringValue() == typ {
			return Get(v.GetStructValue(), "status").GetStringValue()
		}
	}
	return ""
}
