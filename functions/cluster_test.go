package functions_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/functions"
)

// cluster is just enough of Crossplane and of a cluster to play a claim round
// by round by hand: it stores what the function desires, removes what it no
// longer does, and changes the status of an object only when told to.
type cluster struct {
	t  testing.TB
	fn *functions.Function

	claim    *structpb.Struct
	observed map[string]*structpb.Struct
	settings *structpb.Struct

	// annotations that were applied, by component: all others are somebody
	// else's and stay.
	annotations map[string][]string
}

func newCluster(t testing.TB, claim string, opts ...functions.Option) *cluster {
	t.Helper()
	c := &cluster{
		t: t, fn: functions.New(opts...), claim: parse(t, claim),
		observed: map[string]*structpb.Struct{}, annotations: map[string][]string{},
	}
	m := fields(c.claim, "metadata")
	m["uid"] = structpb.NewStringValue("00000000-0000-4000-8000-000000000001")
	if m["generation"] == nil {
		m["generation"] = structpb.NewNumberValue(1)
	}
	return c
}

func parse(t testing.TB, text string) *structpb.Struct {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return s
}

// fields of an object, along a path that is made where it is missing.
func fields(s *structpb.Struct, path ...string) map[string]*structpb.Value {
	for _, p := range path {
		if s.GetFields()[p].GetStructValue() == nil {
			s.Fields[p] = structpb.NewStructValue(&structpb.Struct{})
		}
		s = s.GetFields()[p].GetStructValue()
		if s.Fields == nil {
			s.Fields = map[string]*structpb.Value{}
		}
	}
	return s.GetFields()
}

// get reads a value along a path of field names and list indices.
func get(s *structpb.Struct, path ...any) *structpb.Value {
	v := structpb.NewStructValue(s)
	for _, p := range path {
		switch k := p.(type) {
		case string:
			v = v.GetStructValue().GetFields()[k]
		case int:
			vs := v.GetListValue().GetValues()
			if k >= len(vs) {
				return nil
			}
			v = vs[k]
		}
	}
	return v
}

// set writes a value along a path of field names.
func set(s *structpb.Struct, value any, path ...string) {
	v, err := structpb.NewValue(value)
	if err != nil {
		panic(err)
	}
	fields(s, path[:len(path)-1]...)[path[len(path)-1]] = v
}

// as reads an object of the cluster, or one to apply, into its type.
func as[T any](t testing.TB, s *structpb.Struct) *T {
	t.Helper()
	if s == nil {
		t.Fatalf("there is no such %T", *new(T))
	}
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole(s.AsMap()).(map[string]any), out); err != nil {
		t.Fatalf("cannot read a %T: %v", *out, err)
	}
	return out
}

// whole makes integers of numbers without a fraction.
func whole(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			x[k] = whole(x[k])
		}
	case []any:
		for i := range x {
			x[i] = whole(x[i])
		}
	case float64:
		if x == float64(int64(x)) {
			return int64(x)
		}
	}
	return v
}

// edit the claim's spec, as a user does: its generation goes up.
func (c *cluster) edit(value any, path ...string) {
	if value == nil {
		delete(fields(c.claim, append([]string{"spec"}, path[:len(path)-1]...)...), path[len(path)-1])
	} else {
		set(c.claim, value, append([]string{"spec"}, path...)...)
	}
	set(c.claim, get(c.claim, "metadata", "generation").GetNumberValue()+1, "metadata", "generation")
}

// install an EnvironmentConfig.
func (c *cluster) install(data string) {
	c.settings = parse(c.t, "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: storeplane}")
	fields(c.settings)["data"] = structpb.NewStructValue(parse(c.t, data))
}

func (c *cluster) request() *fnv1.RunFunctionRequest {
	req := &fnv1.RunFunctionRequest{
		Meta:              &fnv1.RequestMeta{Tag: "tag"},
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: c.claim}, Resources: map[string]*fnv1.Resource{}},
		Desired:           &fnv1.State{},
		RequiredResources: map[string]*fnv1.Resources{"settings": {}},
	}
	for n, o := range c.observed {
		req.Observed.Resources[n] = &fnv1.Resource{Resource: o}
	}
	if c.settings != nil {
		req.RequiredResources["settings"].Items = []*fnv1.Resource{{Resource: c.settings}}
	}
	return req
}

// run calls the function as the wire would: with copies.
func (c *cluster) run() *fnv1.RunFunctionResponse {
	c.t.Helper()
	rsp, err := c.fn.RunFunction(context.Background(), proto.CloneOf(c.request()))
	if err != nil {
		c.t.Fatalf("RunFunction(): %v", err)
	}
	return rsp
}

// reconcile calls the function and stores what it desires. A fatal result
// changes nothing but conditions.
func (c *cluster) reconcile() *fnv1.RunFunctionResponse {
	c.t.Helper()
	rsp := c.run()
	fatal := slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
	if !fatal {
		for n := range c.observed {
			if rsp.GetDesired().GetResources()[n] == nil {
				delete(c.observed, n)
			}
		}
		for n, r := range rsp.GetDesired().GetResources() {
			c.store(n, r.GetResource())
		}
		status := get(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue()
		c.claim.Fields["status"] = structpb.NewStructValue(proto.CloneOf(status))
	}
	conditions := &structpb.ListValue{}
	for _, cond := range rsp.GetConditions() {
		status := map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False"}[cond.GetStatus()]
		conditions.Values = append(conditions.Values, structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"type": structpb.NewStringValue(cond.GetType()), "status": structpb.NewStringValue(status),
			"reason": structpb.NewStringValue(cond.GetReason()), "message": structpb.NewStringValue(cond.GetMessage()),
		}}))
	}
	fields(c.claim, "status")["conditions"] = structpb.NewListValue(conditions)
	return rsp
}

// store an applied object as an API server does.
func (c *cluster) store(component string, applied *structpb.Struct) {
	was, next := c.observed[component], proto.CloneOf(applied)
	meta := fields(next, "metadata")
	meta["uid"] = structpb.NewStringValue("uid-" + component)
	meta["resourceVersion"] = structpb.NewStringValue("7")
	meta["creationTimestamp"] = structpb.NewStringValue("2024-01-01T00:00:00Z")
	meta["generation"] = structpb.NewNumberValue(1)
	meta["managedFields"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(&structpb.Struct{})}})
	if kind := get(next, "kind").GetStringValue(); kind == "Deployment" && get(next, "spec", "replicas") == nil && !scaledByOther(was) {
		// The API server's default, also for a field that its owner let go.
		set(next, 1, "spec", "replicas")
	}
	if was != nil {
		if st, ok := was.GetFields()["status"]; ok {
			next.Fields["status"] = st
		}
		for k, v := range get(was, "metadata", "annotations").GetStructValue().GetFields() {
			if !slices.Contains(c.annotations[component], k) {
				fields(next, "metadata", "annotations")[k] = v
			}
		}
		if get(next, "spec", "replicas") == nil && scaledByOther(was) {
			fields(next, "spec")["replicas"] = get(was, "spec", "replicas")
			meta["managedFields"] = get(was, "metadata", "managedFields")
		}
		generation := get(was, "metadata", "generation").GetNumberValue()
		if !proto.Equal(get(was, "spec"), get(next, "spec")) {
			generation++
		}
		meta["generation"] = structpb.NewNumberValue(generation)
	}
	c.annotations[component] = slices.Collect(maps.Keys(get(applied, "metadata", "annotations").GetStructValue().GetFields()))
	c.observed[component] = next
}

// scale a Deployment as an autoscaler does: through the subresource, which makes
// the field its own.
func (c *cluster) scale(component string, replicas int) { //nolint:unparam // a case names what it scales
	c.t.Helper()
	o := c.observed[component]
	set(o, replicas, "spec", "replicas")
	set(o, get(o, "metadata", "generation").GetNumberValue()+1, "metadata", "generation")
	c.managed(component, "kube-controller-manager", "scale", "f:spec", "f:replicas")
}

// managed makes a field somebody else's.
func (c *cluster) managed(component, manager, subresource string, path ...string) {
	c.t.Helper()
	owned := map[string]any{}
	for _, p := range slices.Backward(path) {
		owned = map[string]any{p: owned}
	}
	set(c.observed[component], []any{
		map[string]any{"manager": "apiextensions.crossplane.io/composed/0123456789abcdef", "operation": "Apply", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:template": map[string]any{}}}},
		map[string]any{"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": owned},
	}, "metadata", "managedFields")
}

// scaledByOther tells whether an object's number of pods was set by scale.
func scaledByOther(o *structpb.Struct) bool {
	return get(o, "metadata", "managedFields", 1, "fieldsV1", "f:spec", "f:replicas") != nil
}

// heal makes the status of objects what it is once all went well: of those
// named, or of all.
func (c *cluster) heal(components ...string) {
	c.t.Helper()
	if len(components) == 0 {
		components = slices.Sorted(maps.Keys(c.observed))
	}
	for _, n := range components {
		o := c.observed[n]
		if o == nil {
			c.t.Fatalf("%s is not there to be healed", n)
		}
		generation := get(o, "metadata", "generation").GetNumberValue()
		replicas := 1.0
		if v := get(o, "spec", "replicas"); v != nil {
			replicas = v.GetNumberValue()
		}
		status := ""
		switch get(o, "kind").GetStringValue() {
		case "Deployment":
			status = fmt.Sprintf(`{observedGeneration: %[1]v, replicas: %[2]v, updatedReplicas: %[2]v, readyReplicas: %[2]v, availableReplicas: %[2]v,
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`, generation, replicas)
		case "StatefulSet":
			status = fmt.Sprintf(`{observedGeneration: %[1]v, replicas: %[2]v, updatedReplicas: %[2]v, readyReplicas: %[2]v, currentReplicas: %[2]v, availableReplicas: %[2]v,
  currentRevision: a-1, updateRevision: a-1}`, generation, replicas)
		case "Job":
			status = `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`
		case "DatabaseCluster", "WebApp":
			status = fmt.Sprintf(`{phase: Running, readyGeneration: %[1]v, conditions: [{type: Synced, status: "True", observedGeneration: %[1]v}, {type: Ready, status: "True", observedGeneration: %[1]v}]}`, generation)
		case "ConfigMap":
			// Patroni's callback names the primary.
			if n == "patroni-config" {
				set(o, get(o, "metadata", "name").GetStringValue()+"-0", "metadata", "annotations", "storeplane.example.com/primary")
			}
		}
		if status != "" {
			c.status(n, status)
		}
	}
}

// status of an object, as some controller writes it.
func (c *cluster) status(component, status string) {
	c.t.Helper()
	c.observed[component].Fields["status"] = structpb.NewStructValue(parse(c.t, status))
}

// settle reconciles and heals until nothing new appears, and returns the
// components in the order in which they appeared, one list a round.
func (c *cluster) settle() [][]string {
	c.t.Helper()
	var out [][]string
	for range 20 {
		before := maps.Clone(c.observed)
		rsp := c.reconcile()
		if len(rsp.GetResults()) > 0 {
			c.t.Fatalf("refused: %v", rsp.GetResults())
		}
		var appeared []string
		for _, n := range slices.Sorted(maps.Keys(c.observed)) {
			if before[n] == nil {
				appeared = append(appeared, n)
			}
		}
		c.heal()
		if len(appeared) > 0 {
			out = append(out, appeared)
			continue
		}
		if c.reconcile(); c.phase() != "Running" {
			c.heal()
			continue
		}
		return out
	}
	c.t.Fatalf("the claim does not settle: %v", get(c.claim, "status"))
	return nil
}

func (c *cluster) phase() string { return get(c.claim, "status", "phase").GetStringValue() }

func (c *cluster) message() string { return get(c.claim, "status", "message").GetStringValue() }

// condition of the claim as it is.
func (c *cluster) condition(typ string) (status, message string) {
	for _, v := range get(c.claim, "status", "conditions").GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		if f["type"].GetStringValue() == typ {
			return f["status"].GetStringValue(), f["message"].GetStringValue()
		}
	}
	return "", ""
}

// names of the observed components, sorted.
func (c *cluster) names() []string { return slices.Sorted(maps.Keys(c.observed)) }

// value of a key of an observed Secret.
func (c *cluster) value(component, key string) string {
	c.t.Helper()
	b, err := base64.StdEncoding.DecodeString(get(c.observed[component], "data", key).GetStringValue())
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// refused runs the function on a claim of which nothing exists, and returns the
// words of its refusal.
func refused(t testing.TB, claim string) string {
	t.Helper()
	c := newCluster(t, claim)
	rsp := c.run()
	if len(rsp.GetResults()) == 0 {
		return ""
	}
	r := rsp.GetResults()[0]
	if r.GetSeverity() != fnv1.Severity_SEVERITY_WARNING || r.GetReason() != "Invalid" {
		t.Errorf("want a warning that the claim is invalid, got %v", r)
	}
	if len(rsp.GetDesired().GetResources()) > 0 {
		t.Errorf("a refused claim applies nothing, got %v", slices.Sorted(maps.Keys(rsp.GetDesired().GetResources())))
	}
	status := get(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue()
	if got := get(status, "phase").GetStringValue(); got != "Failed" {
		t.Errorf("want phase Failed, got %q", got)
	}
	if got := get(status, "message").GetStringValue(); got != r.GetMessage() {
		t.Errorf("want the status to say %q, got %q", r.GetMessage(), got)
	}
	return r.GetMessage()
}

// refusedWhileRunning settles a claim, changes it, and returns the words of the
// refusal, having seen that nothing else changes.
func refusedWhileRunning(t testing.TB, c *cluster, change func()) string {
	t.Helper()
	c.settle()
	before := c.names()
	change()
	phase := c.phase()
	rsp := c.reconcile()
	if len(rsp.GetResults()) == 0 {
		return ""
	}
	r := rsp.GetResults()[0]
	if r.GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
		t.Errorf("while something runs a refusal is fatal, so that nothing is applied or removed: got %v", r)
	}
	if len(rsp.GetDesired().GetResources()) > 0 {
		t.Errorf("a refused change applies nothing")
	}
	if !slices.Equal(before, c.names()) || c.phase() != phase {
		t.Errorf("a refused change changes nothing: want %v in phase %s, got %v in phase %s", before, phase, c.names(), c.phase())
	}
	if status, message := c.condition("Accepted"); status != "False" || message != r.GetMessage() {
		t.Errorf("want condition Accepted False %q, got %s %q", r.GetMessage(), status, message)
	}
	return r.GetMessage()
}
