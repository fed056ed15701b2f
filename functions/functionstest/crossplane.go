package functionstest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/converge"
)

// Crossplane simulates Crossplane and a cluster for one claim. It stores what the function desires,
// removes what the function no longer desires, and changes the status of an object only when a test
// calls for it.
type Crossplane struct {
	// Function is the function under test.
	Function *functions.Function

	// Claim is the claim in the cluster.
	Claim *structpb.Struct

	// Observed are the objects that the claim composes, by component.
	Observed map[string]*structpb.Struct

	// Settings is the EnvironmentConfig of the installation, nil where there is none.
	Settings *structpb.Struct

	// Others are existing objects that the claim does not compose.
	Others []*structpb.Struct

	// Schemas are those of the kinds that the cluster serves, by requirement.
	Schemas map[string]*fnv1.Schema

	// Written is called after each write to the claim's status. It may be nil.
	Written func(claim *structpb.Struct)

	t testing.TB

	// versions counts the resource versions that were assigned.
	versions int

	// annotations are the keys that were applied, by component. All others belong to other managers
	// and stay.
	annotations map[string][]string
}

// New simulates Crossplane for a claim in YAML, and a function with these options. The claim does
// not compose anything yet.
func New(t testing.TB, claim string, opts ...functions.Option) *Crossplane {
	t.Helper()
	c := &Crossplane{
		t: t, Function: functions.New(opts...), Claim: Parse(t, claim),
		Observed: map[string]*structpb.Struct{}, annotations: map[string][]string{},
	}
	m := Fields(c.Claim, "metadata")
	m["uid"] = structpb.NewStringValue("00000000-0000-4000-8000-000000000001")
	m["resourceVersion"] = structpb.NewStringValue("1")
	if m["generation"] == nil {
		m["generation"] = structpb.NewNumberValue(1)
	}
	return c
}

// Edit sets a field of the claim's spec and increments its generation, as an edit by a user does. A
// nil value removes the field.
func (c *Crossplane) Edit(value any, path ...string) {
	if value == nil {
		delete(Fields(c.Claim, append([]string{"spec"}, path[:len(path)-1]...)...), path[len(path)-1])
	} else {
		Set(c.Claim, value, append([]string{"spec"}, path...)...)
	}
	Set(c.Claim, Get(c.Claim, "metadata", "generation").GetNumberValue()+1, "metadata", "generation")
}

// InstallSettings sets the data of the installation's EnvironmentConfig.
func (c *Crossplane) InstallSettings(data string) {
	c.Settings = Parse(c.t, "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: storeplane}")
	Fields(c.Settings)["data"] = structpb.NewStructValue(Parse(c.t, data))
}

// Serve makes the cluster serve the kinds whose schemas these requirements select.
func (c *Crossplane) Serve(requirements ...string) {
	if c.Schemas == nil {
		c.Schemas = map[string]*fnv1.Schema{}
	}
	for _, r := range requirements {
		c.Schemas[r] = &fnv1.Schema{OpenapiV3: Parse(c.t, "{type: object}")}
	}
}

// Request returns the request of Crossplane's first call of the function.
func (c *Crossplane) Request() *fnv1.RunFunctionRequest {
	req := &fnv1.RunFunctionRequest{
		Meta:              &fnv1.RequestMeta{Tag: "tag"},
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: c.Claim}, Resources: map[string]*fnv1.Resource{}},
		Desired:           &fnv1.State{},
		RequiredResources: map[string]*fnv1.Resources{"settings": {}},
		RequiredSchemas:   c.Schemas,
	}
	for n, o := range c.Observed {
		req.Observed.Resources[n] = &fnv1.Resource{Resource: o}
	}
	if c.Settings != nil {
		req.RequiredResources["settings"].Items = []*fnv1.Resource{{Resource: c.Settings}}
	}
	return req
}

// Run calls the function until it requires nothing new, and fails the test where Crossplane gives
// up. It stores nothing.
func (c *Crossplane) Run() *fnv1.RunFunctionResponse {
	c.t.Helper()
	rsp, err := converge.Call(context.Background(), c.Function, c.Request(), c.fetch)
	if err != nil {
		c.t.Fatal(err)
	}
	return rsp
}

// fetch returns the objects that a requirement selects.
func (c *Crossplane) fetch(_ string, sel *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	out := &fnv1.Resources{}
	for _, o := range c.Others {
		if converge.Selects(sel, Unstructured(o)) {
			out.Items = append(out.Items, &fnv1.Resource{Resource: o})
		}
	}
	return out, nil
}

// Add creates an object, which is YAML, that the claim does not compose.
func (c *Crossplane) Add(object string) {
	c.t.Helper()
	c.Others = append(c.Others, Parse(c.t, object))
}

// Reconcile runs the function and stores what it desires, as Crossplane does: first the claim's
// status with its present conditions, and then its new conditions. A fatal result changes only
// conditions.
func (c *Crossplane) Reconcile() *fnv1.RunFunctionResponse {
	c.t.Helper()
	rsp := c.Run()
	fatal := converge.IsFatal(rsp)
	was := Get(c.Claim, "status", "conditions").GetListValue().GetValues()
	if !fatal {
		for n := range c.Observed {
			if rsp.GetDesired().GetResources()[n] == nil {
				delete(c.Observed, n)
			}
		}
		for n, r := range rsp.GetDesired().GetResources() {
			c.store(n, r.GetResource())
		}
		c.reference(rsp.GetDesired().GetResources())
		status := Get(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue()
		c.Claim.Fields["status"] = structpb.NewStructValue(proto.CloneOf(status))
		if len(was) > 0 {
			Fields(c.Claim, "status")["conditions"] = structpb.NewListValue(&structpb.ListValue{Values: was})
		}
		if len(Get(c.Claim, "status").GetStructValue().GetFields()) > 0 {
			c.written() // Applying an empty status where there is none is no write.
		}
	}
	Fields(c.Claim, "status")["conditions"] = structpb.NewListValue(&structpb.ListValue{Values: c.conditionsAfter(was, rsp, fatal)})
	c.written()
	return rsp
}

// reference sets the references to the composed objects, as Crossplane does. The claim's generation
// stays: tests count those of their own edits.
func (c *Crossplane) reference(desired map[string]*fnv1.Resource) {
	refs := make([]*structpb.Value, 0, len(desired))
	for _, n := range slices.Sorted(maps.Keys(desired)) {
		o := desired[n].GetResource()
		refs = append(refs, structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"apiVersion": Get(o, "apiVersion"), "kind": Get(o, "kind"), "name": Get(o, "metadata", "name"),
		}}))
	}
	Fields(c.Claim, "spec", "crossplane")["resourceRefs"] = structpb.NewListValue(&structpb.ListValue{Values: refs})
}

func (c *Crossplane) written() {
	if c.Written != nil {
		c.Written(c.Claim)
	}
}

// conditionsAfter returns the conditions after a reconciliation: those of the function, which have
// no generation, and Crossplane's own, which have one. Those that a fatal result leaves out are
// Unknown.
// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/reconciler.go#L767-L993
func (c *Crossplane) conditionsAfter(was []*structpb.Value, rsp *fnv1.RunFunctionResponse, fatal bool) []*structpb.Value {
	now := map[string]*structpb.Struct{}
	for _, v := range was {
		now[Get(v.GetStructValue(), "type").GetStringValue()] = v.GetStructValue()
	}
	var types []string
	for _, cond := range rsp.GetConditions() {
		status := map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False"}[cond.GetStatus()]
		types = append(types, cond.GetType())
		now[cond.GetType()] = &structpb.Struct{Fields: map[string]*structpb.Value{
			"type": structpb.NewStringValue(cond.GetType()), "status": structpb.NewStringValue(status),
			"reason": structpb.NewStringValue(cond.GetReason()), "message": structpb.NewStringValue(cond.GetMessage()),
		}}
	}
	own := func(cond xpv2.Condition) {
		types = append(types, string(cond.Type))
		now[string(cond.Type)] = &structpb.Struct{Fields: map[string]*structpb.Value{
			"type": structpb.NewStringValue(string(cond.Type)), "status": structpb.NewStringValue(string(cond.Status)), "reason": structpb.NewStringValue(string(cond.Reason)),
			"message": structpb.NewStringValue(cond.Message), "observedGeneration": Get(c.Claim, "metadata", "generation"),
		}}
	}
	if fatal {
		own(xpv2.ReconcileError(errors.New("cannot compose resources")))
	} else {
		own(xpv2.ReconcileSuccess())
		own(converge.Ready(rsp))
	}
	for _, v := range was {
		typ := Get(v.GetStructValue(), "type").GetStringValue()
		if slices.Contains(types, typ) {
			continue
		}
		types = append(types, typ)
		if fatal && typ != "Ready" {
			now[typ].Fields["status"] = structpb.NewStringValue("Unknown")
		}
	}
	out := make([]*structpb.Value, 0, len(types))
	for _, typ := range types {
		out = append(out, structpb.NewStructValue(now[typ]))
	}
	return out
}

// Settle reconciles and heals until nothing new appears, and returns the components in the order in
// which they appeared, one list for each round.
func (c *Crossplane) Settle() [][]string {
	c.t.Helper()
	var out [][]string
	for range 30 {
		before := maps.Clone(c.Observed)
		rsp := c.Reconcile()
		if len(rsp.GetResults()) > 0 {
			c.t.Fatalf("refused: %v", rsp.GetResults())
		}
		var appeared []string
		for _, n := range slices.Sorted(maps.Keys(c.Observed)) {
			if before[n] == nil {
				appeared = append(appeared, n)
			}
		}
		c.Heal()
		if len(appeared) > 0 {
			out = append(out, appeared)
			continue
		}
		if c.Phase() == appsv1.PhaseRunning || c.Phase() == "Hibernated" {
			c.Reconcile()
			return out
		}
	}
	c.t.Fatalf("the claim does not settle: %v", Get(c.Claim, "status"))
	return nil
}

// ComponentNames returns the names of the observed components, sorted.
func (c *Crossplane) ComponentNames() []string { return slices.Sorted(maps.Keys(c.Observed)) }

// Orphaned returns a new claim in a namespace where another one, of the name, left all its objects, as
// kubectl delete --cascade=orphan does.
func Orphaned(t testing.TB, c *Crossplane, name, claim string) *Crossplane {
	t.Helper()
	next := New(t, claim)
	next.Function, next.Settings = c.Function, c.Settings
	next.Others = append(next.Others, c.Others...)
	for component, o := range c.Observed {
		left := proto.CloneOf(o)
		delete(Fields(left, "metadata"), "managedFields")
		Set(left, name, "metadata", "labels", "crossplane.io/composite")
		Set(left, component, "metadata", "annotations", "crossplane.io/composition-resource-name")
		next.Others = append(next.Others, left)
	}
	return next
}
