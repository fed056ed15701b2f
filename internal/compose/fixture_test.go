package compose

import (
	"encoding/base64"
	"maps"
	"slices"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/structs"
)

// claimName is the name of all claims in these tests.
const claimName = "shop"

func meta(component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: claimName + "-" + component, Namespace: "team"}
}

// configMap returns an object that is healthy as soon as it is stored.
func configMap(component, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: meta(component),
		Data:       map[string]string{"value": value},
	}
}

// deployment returns an object that is healthy once its pod is available.
func deployment(component, image string) *k8sappsv1.Deployment {
	return &k8sappsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: meta(component),
		Spec: k8sappsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}},
		},
	}
}

// job returns an object that is healthy once it has completed.
func job(component, image string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: meta(component),
		Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}},
		},
	}
}

func mustStruct(t testing.TB, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stored returns an object as the cluster has it after it was applied, with the fields that the API
// server adds.
func stored(applied *structpb.Struct) *structpb.Struct {
	s := proto.CloneOf(applied)
	m := child(s, "metadata")
	m.Fields["uid"] = structpb.NewStringValue("3a8f7c5e-0000-4000-8000-000000000000")
	m.Fields["resourceVersion"] = structpb.NewStringValue("42")
	m.Fields["generation"] = structpb.NewNumberValue(1)
	m.Fields["creationTimestamp"] = structpb.NewStringValue("2024-01-01T00:00:00Z")
	m.Fields["ownerReferences"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"kind": structpb.NewStringValue("WebApp"), "name": structpb.NewStringValue(claimName),
	}})}})
	m.Fields["managedFields"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("many")}})
	return s
}

// observe returns the object of a component as the cluster has it right after it was applied.
func observe(c Component) *structpb.Struct { return stored(encoded(c)) }

// encoded returns what Decide applies for a component.
func encoded(c Component) *structpb.Struct {
	s, err := structs.EncodeObject(c.Object)
	if err != nil {
		panic(err)
	}
	mark(&c, s)
	return s
}

// madeHealthy returns a healthy copy of an observed object.
func madeHealthy(obj *structpb.Struct) *structpb.Struct {
	s := proto.CloneOf(obj)
	switch s.GetFields()["kind"].GetStringValue() {
	case "Deployment":
		s.Fields["status"] = structpb.NewStructValue(status(
			map[string]float64{"observedGeneration": generationOf(s), "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1},
			[2]string{"Available", "True"},
		))
	case "Job":
		s.Fields["status"] = structpb.NewStructValue(status(map[string]float64{"succeeded": 1}, [2]string{"Complete", "True"}))
	case "Widget":
		s.Fields["status"] = structpb.NewStructValue(status(nil, [2]string{"Ready", "True"}))
	}
	return s
}

// broken returns a copy of an observed object that has failed, if its kind can report that.
func broken(obj *structpb.Struct) *structpb.Struct {
	s := proto.CloneOf(obj)
	switch s.GetFields()["kind"].GetStringValue() {
	case "Deployment":
		st := status(map[string]float64{"observedGeneration": generationOf(s)}, [2]string{"Progressing", "False"})
		st.GetFields()["conditions"].GetListValue().GetValues()[0].GetStructValue().GetFields()["reason"] = structpb.NewStringValue("ProgressDeadlineExceeded")
		s.Fields["status"] = structpb.NewStructValue(st)
	case "Job":
		s.Fields["status"] = structpb.NewStructValue(status(nil, [2]string{"Failed", "True"}))
	}
	return s
}

func generationOf(s *structpb.Struct) float64 {
	return s.GetFields()["metadata"].GetStructValue().GetFields()["generation"].GetNumberValue()
}

func status(numbers map[string]float64, conditions ...[2]string) *structpb.Struct {
	out := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for k, v := range numbers {
		out.Fields[k] = structpb.NewNumberValue(v)
	}
	list := &structpb.ListValue{}
	for _, c := range conditions {
		list.Values = append(list.Values, structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"type": structpb.NewStringValue(c[0]), "status": structpb.NewStringValue(c[1]), "reason": structpb.NewStringValue("Tested"),
		}}))
	}
	out.Fields["conditions"] = structpb.NewListValue(list)
	return out
}

// holding annotates an observed object as one that holds data.
func holding(obj *structpb.Struct) *structpb.Struct {
	annotate(obj, HoldsDataAnnotation, "true")
	return obj
}

func resources(objs map[string]*structpb.Struct) map[string]*fnv1.Resource {
	out := make(map[string]*fnv1.Resource, len(objs))
	for n, o := range objs {
		out[n] = &fnv1.Resource{Resource: o}
	}
	return out
}

// request returns a request for the claim with this status and these observed objects.
func request(t testing.TB, generation int, claimStatus map[string]any, observed map[string]*structpb.Struct) *fnv1.RunFunctionRequest {
	t.Helper()
	xr := map[string]any{
		"apiVersion": "apps.example.com/v1", "kind": "WebApp",
		"metadata": map[string]any{"name": claimName, "namespace": "team", "generation": generation},
		"spec":     map[string]any{"image": "shop:1", "crossplane": map[string]any{"resourceRefs": references(observed)}},
	}
	if claimStatus != nil {
		xr["status"] = claimStatus
	}
	return &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: "tag"},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: mustStruct(t, xr)}, Resources: resources(observed)},
	}
}

// references returns the references of a claim to its composed resources, as Crossplane writes
// them.
func references(observed map[string]*structpb.Struct) []any {
	refs := make([]any, 0, len(observed))
	for _, n := range slices.Sorted(maps.Keys(observed)) {
		o := observed[n].GetFields()
		refs = append(refs, map[string]any{
			"apiVersion": o["apiVersion"].GetStringValue(), "kind": o["kind"].GetStringValue(),
			"name": o["metadata"].GetStructValue().GetFields()["name"].GetStringValue(),
		})
	}
	return refs
}

// respondNext returns the response to the request after this one, which only differs by the
// references that Crossplane has written: a pass that adds objects leaves the status to the next
// one.
func respondNext(req *fnv1.RunFunctionRequest, intent Intent, source Source) *fnv1.RunFunctionResponse {
	desired := map[string]*structpb.Struct{}
	for n, r := range Respond(req, intent, source).GetDesired().GetResources() {
		desired[n] = r.GetResource()
	}
	refs, err := structpb.NewList(references(desired))
	if err != nil {
		panic(err)
	}
	next := proto.CloneOf(req)
	child(child(next.GetObserved().GetComposite().GetResource(), "spec"), "crossplane").Fields["resourceRefs"] = structpb.NewListValue(refs)
	return Respond(next, intent, source)
}

// planned returns an intent that always returns this plan.
func planned(p *Plan) Intent {
	if p.Status == nil {
		p.Status = func(o Outcome) any {
			return &struct {
				Phase   Phase  `json:"phase"`
				Message string `json:"message,omitempty"`
				Ready   int64  `json:"readyGeneration,omitempty"`
			}{o.Phase, o.Common.Message, o.Common.ReadyGeneration}
		}
	}
	return func(*Claim) (*Plan, error) { return p, nil }
}

func refusing(err error) Intent { return func(*Claim) (*Plan, error) { return nil, err } }

// names returns the sorted names of what a decision or a response applies.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func secret(t testing.TB, component string, values map[string]string) *structpb.Struct {
	t.Helper()
	data := map[string]any{}
	for k, v := range values {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	return mustStruct(t, map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": claimName + "-" + component, "namespace": "team"},
		"data":     data,
	})
}

// applied returns what is applied for an object without the marks of a component.
func applied(t testing.TB, o Object) *structpb.Struct {
	t.Helper()
	s, err := structs.EncodeObject(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// claimOf returns a claim that is not ready yet, with these observed objects.
func claimOf(observed map[string]*structpb.Struct) *Claim {
	return &Claim{
		composite: &structpb.Struct{Fields: map[string]*structpb.Value{"metadata": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"name": structpb.NewStringValue(claimName), "namespace": structpb.NewStringValue("team"), "generation": structpb.NewNumberValue(1),
		}})}},
		observed: resources(observed), composed: len(observed),
	}
}
