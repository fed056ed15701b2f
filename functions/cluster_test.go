package functions_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/instance"
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

	// others are in the namespace too, and composed by nobody here.
	others []*structpb.Struct
	// schemas of kinds that the cluster has, by requirement.
	schemas map[string]*fnv1.Schema

	// versions that were stored so far.
	versions int

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
		RequiredSchemas:   c.schemas,
	}
	for n, o := range c.observed {
		req.Observed.Resources[n] = &fnv1.Resource{Resource: o}
	}
	if c.settings != nil {
		req.RequiredResources["settings"].Items = []*fnv1.Resource{{Resource: c.settings}}
	}
	return req
}

// call the function once, as the wire would: with a copy.
func (c *cluster) call(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	c.t.Helper()
	rsp, err := c.fn.RunFunction(context.Background(), proto.CloneOf(req))
	if err != nil {
		c.t.Fatalf("RunFunction(): %v", err)
	}
	return rsp
}

// run calls the function until it asks for nothing new, and gives up when
// Crossplane does (FetchingFunctionRunner of crossplane/crossplane v2.4.0).
func (c *cluster) run() *fnv1.RunFunctionResponse {
	c.t.Helper()
	req := c.request()
	var asked *fnv1.Requirements
	for range 6 {
		rsp := c.call(req)
		if isFatal(rsp) || proto.Equal(asked, rsp.GetRequirements()) {
			return rsp
		}
		asked, req = rsp.GetRequirements(), c.request()
		for name, sel := range asked.GetResources() {
			req.RequiredResources[name] = c.fetch(sel)
		}
	}
	c.t.Fatalf("the function asks for more each time it is called: %v", asked)
	return nil
}

func isFatal(rsp *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
}

// fetch what a function asks for.
func (c *cluster) fetch(sel *fnv1.ResourceSelector) *fnv1.Resources {
	out := &fnv1.Resources{}
	for _, o := range c.others {
		meta := get(o, "metadata").GetStructValue()
		match := get(o, "apiVersion").GetStringValue() == sel.GetApiVersion() && get(o, "kind").GetStringValue() == sel.GetKind() &&
			get(meta, "namespace").GetStringValue() == sel.GetNamespace()
		if n := sel.GetMatchName(); n != "" {
			match = match && get(meta, "name").GetStringValue() == n
		}
		for k, v := range sel.GetMatchLabels().GetLabels() {
			match = match && get(meta, "labels", k).GetStringValue() == v
		}
		if match {
			out.Items = append(out.Items, &fnv1.Resource{Resource: o})
		}
	}
	return out
}

// add an object to the namespace.
func (c *cluster) add(object string) {
	c.t.Helper()
	c.others = append(c.others, parse(c.t, object))
}

// reconcile calls the function and stores what it desires. A fatal result
// changes nothing but conditions.
func (c *cluster) reconcile() *fnv1.RunFunctionResponse {
	c.t.Helper()
	rsp := c.run()
	if !isFatal(rsp) {
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
	meta["creationTimestamp"] = structpb.NewStringValue("2024-01-01T00:00:00Z")
	meta["generation"] = structpb.NewNumberValue(1)
	meta["managedFields"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(&structpb.Struct{})}})
	if kind := get(next, "kind").GetStringValue(); kind == "Deployment" && get(next, "spec", "replicas") == nil && !scaledByOther(was) {
		// The API server's default, also for a field that its owner let go.
		set(next, 1, "spec", "replicas")
	}
	if was != nil {
		c.keepOthers(component, was, next)
		generation := get(was, "metadata", "generation").GetNumberValue()
		if !proto.Equal(get(was, "spec"), get(next, "spec")) {
			generation++
		}
		meta["generation"] = structpb.NewNumberValue(generation)
	}
	meta["resourceVersion"] = get(was, "metadata", "resourceVersion")
	if was == nil || !proto.Equal(was, next) {
		c.versions++
		meta["resourceVersion"] = structpb.NewStringValue(strconv.Itoa(c.versions))
	}
	c.annotations[component] = slices.Collect(maps.Keys(get(applied, "metadata", "annotations").GetStructValue().GetFields()))
	c.observed[component] = next
}

// keepOthers keeps what nobody applies: it is somebody else's.
func (c *cluster) keepOthers(component string, was, next *structpb.Struct) {
	if st, ok := was.GetFields()["status"]; ok {
		next.Fields["status"] = st
	}
	if data, ok := was.GetFields()["data"]; ok && get(next, "data") == nil {
		next.Fields["data"] = data
	}
	for k, v := range get(was, "metadata", "annotations").GetStructValue().GetFields() {
		if !slices.Contains(c.annotations[component], k) {
			fields(next, "metadata", "annotations")[k] = v
		}
	}
	if get(next, "spec", "replicas") == nil && scaledByOther(was) {
		fields(next, "spec")["replicas"] = get(was, "spec", "replicas")
		fields(next, "metadata")["managedFields"] = get(was, "metadata", "managedFields")
	}
}

// scale a Deployment as an autoscaler does: through the subresource, which makes
// the field its own.
func (c *cluster) scale(component string, replicas int) {
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
		case "AppConfig":
			bundle := c.wantedBundle()
			status = fmt.Sprintf(`{atProvider: {bundle: %[2]s, lastGood: %[2]s}, conditions: [{type: Synced, status: "True", observedGeneration: %[1]v}, {type: Ready, status: "True", observedGeneration: %[1]v}]}`, generation, bundle)
		case "Backup":
			if get(o, "metadata", "annotations", backup.EscrowAnnotation) != nil && get(o, "status") == nil {
				status = `{conditions: [{type: Escrowed, status: "True", reason: Kept, observedGeneration: 1}]}`
			}
		case "ConfigMap":
			if n == "instances" {
				c.runInstances()
			}
		}
		if status != "" {
			c.status(n, status)
		}
	}
}

// wantedBundle of what the AppConfig asks for now.
func (c *cluster) wantedBundle() string {
	p := get(c.observed["appconfig"], "spec", "forProvider")
	return bundleOf(get(p.GetStructValue(), "application").GetStringValue(), get(p.GetStructValue(), "config").GetStructValue().AsMap())
}

// bundleOf an application with a config.
func bundleOf(application string, config map[string]any) string {
	values := map[string]string{}
	for k, v := range config {
		values[k] = v.(string)
	}
	return appconfig.Name(application, values)
}

// runInstances has the instance managers do and report what they are told.
func (c *cluster) runInstances() {
	c.t.Helper()
	var objects []*unstructured.Unstructured
	for _, n := range c.names() {
		objects = append(objects, &unstructured.Unstructured{Object: whole(c.observed[n].AsMap()).(map[string]any)})
	}
	converge.RunInstances(objects)
	for i, n := range c.names() {
		if data, ok := objects[i].Object["data"]; ok && n == "instances" {
			set(c.observed[n], data, "data")
		}
	}
}

// report changes what the instance managers report under a key.
func (c *cluster) report(key, json string) {
	c.t.Helper()
	set(c.observed["instances"], json, "data", key)
}

// reportCluster changes what the manager beside the primary says.
func (c *cluster) reportCluster(change func(*instance.Cluster)) {
	changeReport(c, instance.ClusterKey, change)
}

// reportMember changes what a server's own manager says.
func (c *cluster) reportMember(ordinal int32, change func(*instance.Member)) {
	name := get(c.claim, "metadata", "name").GetStringValue() + "-postgresql"
	changeReport(c, instance.MemberKey(instance.Pod(name, ordinal)), change)
}

func changeReport[T any](c *cluster, key string, change func(*T)) {
	c.t.Helper()
	var report T
	if err := json.Unmarshal([]byte(get(c.observed["instances"], "data", key).GetStringValue()), &report); err != nil {
		c.t.Fatalf("cannot read report %s: %v", key, err)
	}
	change(&report)
	b, err := json.Marshal(report)
	if err != nil {
		c.t.Fatal(err)
	}
	c.report(key, string(b))
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
		if c.reconcile(); c.phase() != "Running" && c.phase() != "Hibernated" {
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
	f := c.conditionFields(typ)
	return f["status"].GetStringValue(), f["message"].GetStringValue()
}

// verdict is a condition in one line: its status, reason and message.
func (c *cluster) verdict(typ string) string {
	f := c.conditionFields(typ)
	return strings.TrimSpace(f["status"].GetStringValue() + " " + f["reason"].GetStringValue() + " " + f["message"].GetStringValue())
}

func (c *cluster) conditionFields(typ string) map[string]*structpb.Value {
	for _, v := range get(c.claim, "status", "conditions").GetListValue().GetValues() {
		if f := v.GetStructValue().GetFields(); f["type"].GetStringValue() == typ {
			return f
		}
	}
	return nil
}

// component of the claim's status in one line: ready, or what it waits for.
func (c *cluster) component(name string) string {
	for _, v := range get(c.claim, "status", "components").GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		switch {
		case f["name"].GetStringValue() != name:
		case f["ready"].GetBoolValue():
			return "ready"
		default:
			return f["message"].GetStringValue()
		}
	}
	return ""
}

// waiting names the components that are applied and not ready.
func waiting(rsp *fnv1.RunFunctionResponse) []string {
	var out []string
	for n, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
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
