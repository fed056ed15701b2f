package golden

import (
	"fmt"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/render"
)

// labelsOfAll are on everything that a claim makes, so that one selector shows all
// of it and each object says what it is.
var labelsOfAll = []string{
	"app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/name", "app.kubernetes.io/part-of", "platform",
}

// TestLabels: each object of each example, the pods, Jobs and volume claims that
// controllers make from it included, can be found by the name of its claim.
func TestLabels(t *testing.T) {
	for _, e := range claims(t, renderer(t)) {
		t.Run(e.name, func(t *testing.T) {
			objects, err := render.Load(filepath.Join("testdata", e.name, convergeFile))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, o := range objects {
				if o.GetKind() == e.Claim.GetKind() && o.GetName() == e.Claim.GetName() {
					continue // The claim's own labels are its team's.
				}
				for what, labels := range labelled(o) {
					n++
					checkLabels(t, what+" of "+o.GetKind()+" "+o.GetName(), labels, e.Claim.GetName())
				}
			}
			if n == 0 {
				t.Errorf("The example makes nothing")
			}
		})
	}
}

func checkLabels(t *testing.T, what string, labels map[string]string, platform string) {
	t.Helper()
	for _, k := range labelsOfAll {
		if labels[k] == "" {
			t.Errorf("%s: there is no label %s", what, k)
		}
	}
	for k, want := range map[string]string{"platform": platform, "app.kubernetes.io/part-of": platform, "app.kubernetes.io/managed-by": "storeplane"} {
		if labels[k] != want {
			t.Errorf("%s: label %s is %q, not %q", what, k, labels[k], want)
		}
	}
}

// labelled are the labels of an object, and of what controllers make from it.
func labelled(o *unstructured.Unstructured) map[string]map[string]string {
	out := map[string]map[string]string{"The object": o.GetLabels()}
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	template := func(what string, from map[string]any, path ...string) {
		if t, ok, _ := unstructured.NestedMap(from, path...); ok {
			labels, _, _ := unstructured.NestedStringMap(t, "metadata", "labels")
			out[what] = labels
		}
	}
	switch o.GetKind() {
	case "Deployment", "StatefulSet", "Job":
		template("A pod", spec, "template")
	case "CronJob":
		template("A Job", spec, "jobTemplate")
		template("A pod", spec, "jobTemplate", "spec", "template")
	}
	volumes, _, _ := unstructured.NestedSlice(spec, "volumeClaimTemplates")
	for i, v := range volumes {
		if m, ok := v.(map[string]any); ok {
			template(fmt.Sprintf("Volume claim %d", i), map[string]any{"v": m}, "v")
		}
	}
	return out
}
