package converge_test

import (
	"maps"
	"slices"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/converge"
)

// TestRest: a claim is composed again if an object has changed that it requires, whoever composes
// that object, and is not composed again if nothing has.
func TestRest(t *testing.T) {
	const (
		first  = `{"apiVersion":"apps.example.com/v1","kind":"WebApp","metadata":{"name":"first"},"spec":{"image":"a"}}`
		second = `{"apiVersion":"apps.example.com/v1","kind":"WebApp","metadata":{"name":"second"},"spec":{"image":"a"}}`
	)
	calls := map[string]int{}
	function := func(i input) *fnv1.RunFunctionResponse {
		metadata := i.req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()
		name := metadata["name"].GetStringValue()
		calls[name]++
		switch name {
		case "shop":
			return desired(`{}`, true, map[string]string{"a": first, "b": second})
		case "second":
			return desired(`{}`, true, map[string]string{"config": configMap})
		}
		objects := map[string]string{}
		if len(i.req.GetRequiredResources()["config"].GetItems()) > 0 {
			objects["web"] = deploy
		}
		rsp := desired(`{}`, true, objects)
		rsp.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
			"config": {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: "web-config"}},
		}}
		return rsp
	}
	sim := &converge.Simulator{Function: runner(function), Schemas: schemas}
	m, r, err := sim.Begin(t.Context(), claim(shop))
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(r.Resources[converge.Ref{Kind: "WebApp", Name: "first"}])); !slices.Equal(got, []string{"web"}) {
		t.Errorf("the first WebApp composes %v, want the Deployment that waits for what the second composes", got)
	}

	clear(calls)
	if _, err := m.Apply(t.Context(), claim(shop)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{}, calls); diff != "" {
		t.Errorf("calls for an edit that changes nothing (-want +got):\n%s", diff)
	}

	edited := claim(shop)
	edited.SetLabels(map[string]string{"team": "b"})
	if _, err := m.Apply(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"shop": 1}, calls); diff != "" {
		t.Errorf("calls for an edit that changes the shop alone (-want +got):\n%s", diff)
	}
}
