package fieldowner_test

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/fieldowner"
)

func parse(t *testing.T, text string) *structpb.Struct {
	t.Helper()
	m := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTaken(t *testing.T) {
	const (
		declared = `{spec: {template: {spec: {containers: [{name: app, image: "app:1", args: [a]}], tolerations: []}}}}`
		whole    = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}, "f:image": {}, "f:args": {}}}}}}}`
		noImage  = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}, "f:args": {}}}}}}}`
		image    = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}}}`
		sidecar  = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"proxy"}': {".": {}, "f:image": {}}}, "f:nodeSelector": {}}}}}`
		status   = `{"f:status": {"f:replicas": {}}}`
	)
	edited := strings.Replace(declared, "app:1", "by-hand:1", 1)
	cases := map[string]struct {
		reason      string
		observed    string
		own, others string
		sub         string
		want        map[string]string
	}{
		"Image":    {reason: "An image that is set by hand is taken from Crossplane.", observed: edited, own: noImage, others: image, want: map[string]string{"kubectl-set": `spec.template.spec.containers.k:{"name":"app"}.image`}},
		"Equal":    {reason: "One with the value that is declared is not reverted.", own: noImage, others: image},
		"Same":     {reason: "The same value is owned by both.", own: whole, others: image},
		"Restored": {reason: "As all of it is after a restore.", own: whole, others: whole},
		"Added":    {reason: "What is not declared is not reverted.", own: whole, others: sidecar},
		"Status":   {reason: "What controllers report is no edit.", own: whole, others: status, sub: "status"},
		"Unknown":  {reason: "Where Crossplane has never applied the object nothing is known.", others: image},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := parse(t, cmp.Or(tc.observed, declared))
			entries := []any{map[string]any{"manager": "kubectl-set", "subresource": tc.sub, "fieldsV1": parse(t, tc.others).AsMap()}}
			if tc.own != "" {
				entries = append(entries, map[string]any{"manager": "ours", "fieldsV1": parse(t, tc.own).AsMap()})
			}
			list, err := structpb.NewList(entries)
			if err != nil {
				t.Fatal(err)
			}
			observed.Fields["metadata"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"managedFields": structpb.NewListValue(list)}})
			got := fieldowner.Taken(observed, parse(t, declared), "ours", []string{"spec", "template"})
			want := tc.want
			if want == nil {
				want = map[string]string{}
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nTaken(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestManagerTwice: a manager that both applies and updates an object has two entries, and owns
// the fields of both.
func TestManagerTwice(t *testing.T) {
	observed := parse(t, `{metadata: {managedFields: [
		{manager: ours, operation: Apply, fieldsV1: {"f:spec": {"f:paused": {}}}},
		{manager: scaler, operation: Update, fieldsV1: {"f:spec": {"f:replicas": {}, "f:template": {"f:a": {}}}}},
		{manager: scaler, operation: Apply, fieldsV1: {"f:spec": {"f:image": {}, "f:template": {"f:b": {}}}}}]},
		spec: {replicas: 3, image: "app:2", template: {a: x, b: x}}}`)
	fields := fieldowner.Others(observed)["scaler/"]
	for _, path := range [][]string{{"f:spec", "f:replicas"}, {"f:spec", "f:image"}, {"f:spec", "f:template", "f:a"}, {"f:spec", "f:template", "f:b"}} {
		if !fieldowner.Has(fields, path...) {
			t.Errorf("Others(): want %v, got %v", path, fields)
		}
	}
	for field, want := range map[string]string{"replicas": "spec.replicas", "image": "spec.image"} {
		declared := parse(t, `{spec: {`+field+`: other}}`)
		if got := fieldowner.Taken(observed, declared, "ours", []string{"spec"}); got["scaler"] != want {
			t.Errorf("Taken() of %s: got %v, want %s", field, got, want)
		}
	}
}
