package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/storeplane/storeplane/internal/health"
)

// TestPropertyNeverShrinks: an object that is observed and declared is always applied.
func TestPropertyNeverShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		observed := drawObserved(t, p.Components)
		d := decide(t, p, observed)
		for _, c := range p.Components {
			if _, exists := observed[c.Name]; exists && d.Apply[c.Name] == nil {
				t.Fatalf("%s exists and is declared, yet it is not applied", c.Name)
			}
			if slices.Contains(d.Withheld, c.Name) && observed[c.Name] != nil {
				t.Fatalf("%s exists, yet it is called withheld", c.Name)
			}
		}
	})
}

// TestPropertyGates: an object that is not observed is applied exactly if all components that it
// comes after exist, match their declaration and are healthy.
func TestPropertyGates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		observed := drawObserved(t, p.Components)
		d := decide(t, p, observed)

		byName := map[string]Component{}
		for _, c := range p.Components {
			byName[c.Name] = c
		}
		for _, c := range p.Components {
			open := true
			for _, dep := range c.After {
				open = open && sound(byName[dep], observed[dep])
			}
			_, exists := observed[c.Name]
			_, applied := d.Apply[c.Name]
			if !exists && applied != open {
				t.Fatalf("%s does not exist; all it comes after is healthy: %t; applied: %t", c.Name, open, applied)
			}
			if applied == slices.Contains(d.Withheld, c.Name) {
				t.Fatalf("%s is either applied or withheld: %t", c.Name, applied)
			}
			if !exists && d.Health[c.Name].IsHealthy() {
				t.Fatalf("%s does not exist, yet it is healthy", c.Name)
			}
			if exists && d.Health[c.Name].IsHealthy() != sound(c, observed[c.Name]) {
				t.Fatalf("%s: want healthy %t, got %v", c.Name, sound(c, observed[c.Name]), d.Health[c.Name])
			}
			if h := d.Health[c.Name]; h.IsHealthy() != (h.Message == "") {
				t.Fatalf("%s: only what is not healthy has a message: %v", c.Name, h)
			}
		}
	})
}

// sound reports whether an object is healthy, with an implementation that is independent of the
// tested one.
func sound(c Component, obs *structpb.Struct) bool {
	if obs == nil || obs.GetFields()["metadata"].GetStructValue().GetFields()["deletionTimestamp"] != nil {
		return false
	}
	fields := obs.GetFields()
	if fields["kind"].GetStringValue() == "ConfigMap" {
		return sameContent(c, obs)
	}
	if !c.Once && !sameContent(c, obs) {
		return false
	}
	for _, v := range fields["status"].GetStructValue().GetFields()["conditions"].GetListValue().GetValues() {
		cond := v.GetStructValue().GetFields()
		if typ := cond["type"].GetStringValue(); cond["status"].GetStringValue() == "True" && (typ == "Available" || typ == "Complete" || typ == "Ready") {
			return true
		}
	}
	return false
}

// sameContent reports whether an observed object matches its declaration.
func sameContent(c Component, obs *structpb.Struct) bool {
	want := observe(c)
	for _, f := range []string{"spec", "data"} {
		if !proto.Equal(want.GetFields()[f], obs.GetFields()[f]) {
			return false
		}
	}
	return true
}

// TestPropertyKeeps: an object that is no longer declared is deleted, unless it holds data and is
// not released. An object that is kept is applied as observed, without the fields that the API
// server and Crossplane own.
func TestPropertyKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		observed := drawObserved(t, p.Components)
		before := map[string]*structpb.Struct{}
		for n, o := range observed {
			before[n] = proto.CloneOf(o)
		}
		d := decide(t, p, observed)

		declared := map[string]Component{}
		for _, c := range p.Components {
			declared[c.Name] = c
		}
		var kept []string
		for _, n := range names(observed) {
			if c, ok := declared[n]; ok {
				held := c.Once
				if !held && !sameContent(c, observed[n]) {
					for _, dep := range c.ChangeAfter {
						held = held || !sound(declared[dep], observed[dep])
					}
				}
				if held && !proto.Equal(bare(before[n]), d.Apply[n]) {
					t.Fatalf("%s is to stay as it is:\nwant %v\ngot  %v", n, bare(before[n]), d.Apply[n])
				}
				if !held && !proto.Equal(encoded(c), d.Apply[n]) {
					t.Fatalf("%s is to be what is declared:\nwant %v\ngot  %v", n, encoded(c), d.Apply[n])
				}
				continue
			}
			stays := annotation(before[n], HoldsDataAnnotation) == "true" && !slices.Contains(p.Release, n)
			if got := d.Apply[n]; stays != (got != nil) {
				t.Fatalf("%s is no longer declared: want it to stay %t, got %t", n, stays, got != nil)
			}
			if stays {
				kept = append(kept, n)
				if !proto.Equal(bare(before[n]), d.Apply[n]) {
					t.Fatalf("%s holds data and must stay as it is:\nwant %v\ngot  %v", n, bare(before[n]), d.Apply[n])
				}
			}
		}
		if !slices.Equal(kept, d.Kept) {
			t.Fatalf("want kept %v, got %v", kept, d.Kept)
		}
		for n, o := range observed {
			if !proto.Equal(before[n], o) {
				t.Fatalf("Decide() changed what was observed of %s", n)
			}
		}
	})
}

// bare returns an observed object without the fields that the API server and Crossplane own.
func bare(obs *structpb.Struct) *structpb.Struct {
	s := proto.CloneOf(obs)
	delete(s.Fields, "status")
	for _, f := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "ownerReferences", "managedFields"} {
		delete(s.GetFields()["metadata"].GetStructValue().GetFields(), f)
	}
	delete(s.GetFields()["spec"].GetStructValue().GetFields(), "crossplane")
	return s
}

// TestPropertySameBytes: the same input gives the same bytes, conditions and messages included,
// whatever the order of its maps; and the request is not modified.
func TestPropertySameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		p.Conditions = func(o Outcome) []Condition {
			return []Condition{PartReady("PReady", o, "p"), PartReady("QReady", o, "q")}
		}
		req := drawRequest(t, drawObserved(t, p.Components))
		before := proto.CloneOf(req)
		first := Respond(req, planned(p), ReviewSource{})
		if !proto.Equal(before, req) {
			t.Fatalf("Respond() changed the request")
		}
		for range 3 {
			again := Respond(proto.CloneOf(req), planned(p), ReviewSource{})
			if a, b := bytesOf(first), bytesOf(again); a != b {
				t.Fatalf("one input, two outputs:\n%v\n%v", first, again)
			}
		}
	})
}

func bytesOf(m proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestPropertyReports: the claim is ready exactly if every declared component is healthy, the phase
// follows from that, and the message of a claim that is not ready states what it waits for.
func TestPropertyReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		var got Outcome
		p.Status = func(o Outcome) any {
			got = o
			return &struct {
				Phase           Phase `json:"phase"`
				ReadyGeneration int64 `json:"readyGeneration"`
			}{o.Phase, o.Common.ReadyGeneration}
		}
		observed := drawObserved(t, p.Components)
		req := drawRequest(t, observed)
		rsp := Respond(req, planned(p), ReviewSource{})
		d, err := Decide(NewClaim(req, ReviewSource{}), p)
		if err != nil {
			t.Fatal(err)
		}

		ready, failed := true, false
		parts := map[string]bool{}
		for _, c := range p.Components {
			h := d.Health[c.Name]
			ready, failed = ready && h.IsHealthy(), failed || h.State == health.Failed
			was, ok := parts[c.part()]
			parts[c.part()] = h.IsHealthy() && (was || !ok)
		}
		claim := NewClaim(req, nil)
		had := int64(claim.status("readyGeneration").GetNumberValue())
		want := Deploying
		switch {
		case ready:
			want = Running
		case failed:
			want = Failed
		case len(observed) == 0:
			want = Pending
		case had == claim.Generation():
			want = Degraded
		}
		if got.Ready != ready || got.Phase != want {
			t.Fatalf("want ready %t, %s; got %t, %s", ready, want, got.Ready, got.Phase)
		}
		if ready {
			had = claim.Generation()
		}
		if got.Common.ReadyGeneration != had {
			t.Fatalf("want ready generation %d, got %d", had, got.Common.ReadyGeneration)
		}
		if ready != (got.Common.Message == "") {
			t.Fatalf("ready %t, message %q", ready, got.Common.Message)
		}
		if len(got.Common.Components) != len(parts) {
			t.Fatalf("want parts %v, got %v", parts, got.Common.Components)
		}
		for _, c := range got.Common.Components {
			if c.Ready != parts[c.Name] || c.Ready != (c.Message == "") {
				t.Fatalf("part %s: want ready %t, got %v", c.Name, parts[c.Name], c)
			}
		}

		// The readiness that Crossplane derives: the claim is ready if every resource is, once its
		// status has reported that.
		derived := true
		for n, r := range rsp.GetDesired().GetResources() {
			derived = derived && r.GetReady() == fnv1.Ready_READY_TRUE
			if h, judged := d.Health[n]; judged && h.IsHealthy() != (r.GetReady() == fnv1.Ready_READY_TRUE) {
				t.Fatalf("%s: health %v, ready %v", n, h, r.GetReady())
			}
		}
		word := fnv1.Ready_READY_FALSE
		reported := claim.status("phase").GetStringValue() == string(Running) && claim.status("readyGeneration").GetNumberValue() == float64(claim.Generation()) &&
			claim.status("observedGeneration").GetNumberValue() == desiredStatus(rsp)["observedGeneration"].GetNumberValue()
		// A claim that is Ready already stays so.
		if ready && (reported || claim.isReady()) {
			word = fnv1.Ready_READY_UNSPECIFIED
		}
		if got := rsp.GetDesired().GetComposite().GetReady(); got != word {
			t.Fatalf("ready %t, reported %t: want %v of the claim, got %v", ready, reported, word, got)
		}
		if derived != ready {
			t.Fatalf("Crossplane calls the claim ready: %t; every declared component is healthy: %t", derived, ready)
		}
	})
}

// TestPropertyConverges: if everything that is applied becomes healthy, a claim is ready with
// nothing withheld after at most one round more than it has components.
func TestPropertyConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		cluster := map[string]*structpb.Struct{}
		if rapid.Bool().Draw(t, "from something") {
			cluster = drawObserved(t, p.Components)
			for n, o := range cluster {
				// A claim does not settle while an object is being deleted or unhealthy.
				m := o.GetFields()["metadata"].GetStructValue().GetFields()
				delete(m, "deletionTimestamp")
				cluster[n] = madeHealthy(o)
			}
		}

		rounds := len(p.Components) + 1
		for round := 1; ; round++ {
			d := decide(t, p, cluster)
			next := map[string]*structpb.Struct{}
			for n, want := range d.Apply {
				next[n] = madeHealthy(stored(want))
			}
			if same(cluster, next) {
				if len(d.Withheld) > 0 {
					t.Fatalf("settled, yet withheld: %v", d.Withheld)
				}
				for n, h := range d.Health {
					if !h.IsHealthy() {
						t.Fatalf("settled, yet %s is not healthy: %v", n, h)
					}
				}
				return
			}
			if round > rounds {
				t.Fatalf("not settled after %d rounds; withheld: %v", rounds, d.Withheld)
			}
			cluster = next
		}
	})
}

func same(a, b map[string]*structpb.Struct) bool {
	return maps.EqualFunc(a, b, func(x, y *structpb.Struct) bool { return proto.Equal(x, y) })
}

// TestPropertyOrder: in a cluster whose objects become healthy and unhealthy at random, an object
// is only created once those that it comes after were healthy, and is never removed again.
func TestPropertyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Plan{Components: drawComponents(t)}
		cluster := map[string]*structpb.Struct{}
		wasHealthy := map[string]bool{}
		byName := map[string]Component{}
		for _, c := range p.Components {
			byName[c.Name] = c
		}
		for round := range rapid.IntRange(1, 12).Draw(t, "rounds") {
			for n, o := range cluster {
				wasHealthy[n] = wasHealthy[n] || sound(byName[n], o)
			}
			d := decide(t, p, cluster)
			for n := range cluster {
				if d.Apply[n] == nil {
					t.Fatalf("round %d: %s disappears", round, n)
				}
			}
			next := map[string]*structpb.Struct{}
			for _, n := range names(d.Apply) {
				if cluster[n] == nil {
					for _, dep := range byName[n].After {
						if !wasHealthy[dep] {
							t.Fatalf("round %d: %s appears though %s never was healthy", round, n, dep)
						}
					}
				}
				o := stored(d.Apply[n])
				switch rapid.IntRange(0, 2).Draw(t, fmt.Sprintf("round %d %s", round, n)) {
				case 0:
					o = madeHealthy(o)
				case 1:
					o = broken(o)
				}
				next[n] = o
			}
			cluster = next
		}
	})
}

// TestPropertyContradictions: a plan that contradicts itself is an internal error whatever is
// observed, and nothing is applied.
func TestPropertyContradictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Plan{Components: drawComponents(t)}
		if len(p.Components) < 2 {
			return
		}
		observed := drawObserved(t, p.Components)
		index := func(label string) int { return rapid.IntRange(0, len(p.Components)-1).Draw(t, label) }
		link := func(i int, name string) {
			if rapid.Bool().Draw(t, "by changes") {
				p.Components[i].ChangeAfter = append(p.Components[i].ChangeAfter, name)
			} else {
				p.Components[i].After = append(p.Components[i].After, name)
			}
		}
		want := ""
		switch rapid.IntRange(0, 3).Draw(t, "contradiction") {
		case 0: // A name that is not declared.
			link(index("which"), "undeclared")
			want = "which is not declared"
		case 1: // A name that is used twice.
			i, j := index("which"), index("whose")
			if i == j {
				return
			}
			p.Components[i].Name = p.Components[j].Name
			want = "two components are named"
		case 2: // A cycle: a component comes after one that comes after it.
			from := index("from")
			reach := reachable(p.Components, p.Components[from].Name)
			to := rapid.SampledFrom(reach).Draw(t, "to")
			for i := range p.Components {
				if p.Components[i].Name == to {
					link(i, p.Components[from].Name)
				}
			}
			want = "wait for each other"
		case 3: // A name that is not the claim's.
			p.Components[index("which")].Object.SetName("other-thing")
			want = "not shop-<component>"
		}

		_, err := Decide(claimOf(observed), p)
		if err == nil || IsInvalid(err) || (want != "two components are named" && !strings.Contains(err.Error(), want)) {
			t.Fatalf("want an error of ours with %q, got %v", want, err)
		}
		rsp := Respond(drawRequest(t, observed), planned(p), ReviewSource{})
		if len(rsp.GetDesired().GetResources()) > 0 || rsp.GetResults()[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
			t.Fatalf("want a fatal result and nothing applied, got %v", rsp)
		}
	})
}

// reachable returns the names of a component and of all that it comes after.
func reachable(components []Component, name string) []string {
	seen := map[string]bool{}
	var walk func(string)
	walk = func(n string) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, c := range components {
			if c.Name != n {
				continue
			}
			for _, d := range slices.Concat(c.After, c.ChangeAfter) {
				walk(d)
			}
		}
	}
	walk(name)
	return names(seen)
}

// TestPropertyInvalid: an error of the claim is fatal and applies nothing if objects are observed.
// If none is observed, the phase is Failed. The conditions of the claim are repeated in their
// order.
func TestPropertyInvalid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.StringMatching(`[ -~]{1,40}`).Draw(t, "message")
		observed := drawObserved(t, drawComponents(t))
		rsp := Respond(drawRequest(t, observed), refusing(Invalidf("%s", message)), ReviewSource{})

		if len(rsp.GetDesired().GetResources()) > 0 {
			t.Fatalf("want nothing applied, got %v", names(rsp.GetDesired().GetResources()))
		}
		want := fnv1.Severity_SEVERITY_FATAL
		conditions := []string{"Accepted", "Stalled", "Pruned"}
		if len(observed) == 0 {
			want, conditions = fnv1.Severity_SEVERITY_WARNING, []string{"Accepted", "Stalled"}
		}
		if got := rsp.GetResults(); len(got) != 1 || got[0].GetSeverity() != want || got[0].GetMessage() != message {
			t.Fatalf("want one result %v %q, got %v", want, message, got)
		}
		var types []string
		for _, c := range rsp.GetConditions() {
			types = append(types, c.GetType())
		}
		if !slices.Equal(types, conditions) {
			t.Fatalf("want conditions %v, got %v", conditions, types)
		}
		if c := rsp.GetConditions()[0]; c.GetStatus() != fnv1.Status_STATUS_CONDITION_FALSE || c.GetMessage() != message {
			t.Fatalf("want Accepted False with the message, got %v", c)
		}
	})
}
