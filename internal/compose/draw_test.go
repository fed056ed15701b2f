package compose

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// drawComponents draws components in any order, whose dependencies have no cycles.
func drawComponents(t *rapid.T) []Component {
	n := rapid.IntRange(0, 9).Draw(t, "components")
	out := make([]Component, 0, n)
	for i := range n {
		name := fmt.Sprintf("c%d", i)
		c := Component{Name: name}
		if rapid.Bool().Draw(t, name+" in a part") {
			c.Part = rapid.SampledFrom([]string{"p", "q", "c0"}).Draw(t, name+" part")
		}
		value := rapid.SampledFrom([]string{"one", "two"}).Draw(t, name+" value")
		switch rapid.IntRange(0, 3).Draw(t, name+" kind") {
		case 0:
			c.Object = configMap(name, value)
		case 1:
			c.Object = deployment(name, value)
		case 2:
			c.Object, c.Once = job(name, value), true
		case 3:
			c.Object = widget(name, value)
		}
		c.HoldsData = rapid.IntRange(0, 3).Draw(t, name+" holds data") == 0
		// Only components before it, so that there is no cycle.
		c.After = drawNames(t, name+" after", out)
		if rapid.IntRange(0, 2).Draw(t, name+" holds changes") == 0 && !c.Once {
			c.ChangeAfter = drawNames(t, name+" change after", out)
		}
		out = append(out, c)
	}
	return rapid.Permutation(out).Draw(t, "order")
}

// widget returns an object of a kind for which this package has no rules.
func widget(component, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"name": claimName + "-" + component, "namespace": "team"},
		"spec":     map[string]any{"value": value, "crossplane": map[string]any{"refs": []any{value}}},
	}}
}

func drawNames(t *rapid.T, label string, from []Component) []string {
	var out []string
	for _, c := range from {
		if rapid.IntRange(0, 2).Draw(t, label+" "+c.Name) == 0 {
			out = append(out, c.Name)
		}
	}
	return out
}

// other returns a component with another declaration of its object.
func other(c Component) Component {
	switch c.Object.GetObjectKind().GroupVersionKind().Kind {
	case "ConfigMap":
		c.Object = configMap(c.Name, "before")
	case "Deployment":
		c.Object = deployment(c.Name, "before")
	case "Job":
		c.Object = job(c.Name, "before")
	default:
		c.Object = widget(c.Name, "before")
	}
	return c
}

// drawObserved draws the observed objects of the components, and of some that are no longer
// declared.
func drawObserved(t *rapid.T, components []Component) map[string]*structpb.Struct {
	out := map[string]*structpb.Struct{}
	for _, c := range components {
		var s *structpb.Struct
		switch rapid.IntRange(0, 6).Draw(t, c.Name+" state") {
		case 0, 1:
			continue
		case 2, 3:
			s = madeHealthy(observe(c))
		case 4:
			s = observe(c)
		case 5:
			s = broken(observe(c))
		case 6:
			s = madeHealthy(observe(other(c)))
		}
		if rapid.IntRange(0, 9).Draw(t, c.Name+" going") == 0 {
			s = deleted(s)
		}
		out[c.Name] = s
	}
	for _, name := range []string{"old1", "old2", "old3"} {
		if !rapid.Bool().Draw(t, name+" observed") {
			continue
		}
		out[name] = madeHealthy(observe(Component{Name: name, Object: deployment(name, ""), HoldsData: rapid.Bool().Draw(t, name+" holds data")}))
	}
	return out
}

func drawPlan(t *rapid.T) *Plan {
	return &Plan{Components: drawComponents(t), Release: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"old1", "old2", "c0"}), rapid.ID[string]).Draw(t, "release")}
}

func decide(t *rapid.T, p *Plan, observed map[string]*structpb.Struct) *Decision {
	d, err := Decide(claimOf(observed), p)
	if err != nil {
		t.Fatalf("Decide(): %v", err)
	}
	return d
}

func drawRequest(t *rapid.T, observed map[string]*structpb.Struct) *fnv1.RunFunctionRequest {
	generation := rapid.IntRange(1, 3).Draw(t, "generation")
	xr, err := structpb.NewStruct(map[string]any{
		"apiVersion": "apps.example.com/v1", "kind": "WebApp",
		"metadata": map[string]any{"name": claimName, "namespace": "team", "generation": generation},
		"status": map[string]any{"phase": rapid.SampledFrom([]string{"Pending", "Deploying", "Running"}).Draw(t, "phase"), "readyGeneration": rapid.IntRange(0, generation).Draw(t, "ready generation"), "observedGeneration": rapid.IntRange(0, generation).Draw(t, "observed generation"), "conditions": []any{
			map[string]any{"type": "Pruned", "status": "True", "reason": "Pruned"},
			map[string]any{"type": "Ready", "status": rapid.SampledFrom([]string{"True", "False"}).Draw(t, "claim ready"), "reason": "Available", "observedGeneration": rapid.IntRange(1, generation).Draw(t, "generation of ready")},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: resources(observed)}}
}
