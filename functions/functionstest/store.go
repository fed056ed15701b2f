package functionstest

import (
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// store stores an applied object as an API server does.
func (c *Crossplane) store(component string, applied *structpb.Struct) {
	was, next := c.Observed[component], proto.CloneOf(applied)
	meta := Fields(next, "metadata")
	meta["uid"] = structpb.NewStringValue("uid-" + component)
	meta["creationTimestamp"] = structpb.NewStringValue("2024-01-01T00:00:00Z")
	meta["generation"] = structpb.NewNumberValue(1)
	meta["managedFields"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(&structpb.Struct{})}})
	if kind := Get(next, "kind").GetStringValue(); kind == "Deployment" && Get(next, "spec", "replicas") == nil && !scaledByOther(was) {
		// The API server sets its default also for a field that its owner no longer applies.
		Set(next, 1, "spec", "replicas")
	}
	if was != nil {
		c.keepOthers(component, was, next)
		generation := Get(was, "metadata", "generation").GetNumberValue()
		if !proto.Equal(Get(was, "spec"), Get(next, "spec")) {
			generation++
		}
		meta["generation"] = structpb.NewNumberValue(generation)
	}
	meta["resourceVersion"] = Get(was, "metadata", "resourceVersion")
	if was == nil || !proto.Equal(was, next) {
		c.versions++
		meta["resourceVersion"] = structpb.NewStringValue(strconv.Itoa(c.versions))
	}
	c.annotations[component] = slices.Collect(maps.Keys(Get(applied, "metadata", "annotations").GetStructValue().GetFields()))
	c.Observed[component] = next
}

// keepOthers keeps what the function did not apply and other managers own.
func (c *Crossplane) keepOthers(component string, was, next *structpb.Struct) {
	if st, ok := was.GetFields()["status"]; ok {
		next.Fields["status"] = st
	}
	if data, ok := was.GetFields()["data"]; ok && Get(next, "data") == nil {
		next.Fields["data"] = data
	}
	for k, v := range Get(was, "metadata", "annotations").GetStructValue().GetFields() {
		if !slices.Contains(c.annotations[component], k) {
			Fields(next, "metadata", "annotations")[k] = v
		}
	}
	if Get(next, "spec", "replicas") == nil && scaledByOther(was) {
		Fields(next, "spec")["replicas"] = Get(was, "spec", "replicas")
		Fields(next, "metadata")["managedFields"] = Get(was, "metadata", "managedFields")
	}
}

// Scale scales a Deployment as an autoscaler does: through the subresource, by which the autoscaler
// becomes the manager of the field.
func (c *Crossplane) Scale(component string, replicas int) {
	c.t.Helper()
	o := c.Observed[component]
	Set(o, replicas, "spec", "replicas")
	Set(o, Get(o, "metadata", "generation").GetNumberValue()+1, "metadata", "generation")
	c.SetFieldManager(component, "kube-controller-manager", "scale", "f:spec", "f:replicas")
}

// SetFieldManager makes a manager own a field of a component's object, by its path in
// managedFields.
func (c *Crossplane) SetFieldManager(component, manager, subresource string, path ...string) {
	c.t.Helper()
	owned := map[string]any{}
	for _, p := range slices.Backward(path) {
		owned = map[string]any{p: owned}
	}
	Set(c.Observed[component], []any{
		map[string]any{"manager": "apiextensions.crossplane.io/composed/0123456789abcdef", "operation": "Apply", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:template": map[string]any{}}}},
		map[string]any{"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": owned},
	}, "metadata", "managedFields")
}

// scaledByOther reports whether a manager other than the function owns an object's replicas.
func scaledByOther(o *structpb.Struct) bool {
	return Get(o, "metadata", "managedFields", 1, "fieldsV1", "f:spec", "f:replicas") != nil
}
