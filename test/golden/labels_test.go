package golden

import (
	"fmt"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/render"
)

// labelsOfAll are on all objects of a claim, so that one selector finds all of them, and the
// labels of an object identify it.
var labelsOfAll = []string{
	"app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/name", "app.kubernetes.io/part-of", "platform",
}

// TestLabels: each object of each example, and the pods, Jobs and PersistentVolumeClaims that
// controllers create from it, can be found by the name of its claim.
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
					continue // The team sets the claim's own labels.
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

// labelled returns the labels of an object, and of what controllers create from it.
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
