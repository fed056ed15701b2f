package golden

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/storeplane/storeplane/internal/render"
)

// templates are the paths of the pod templates, by kind.
var templates = map[string][]string{
	"Deployment": {"spec", "template"}, "StatefulSet": {"spec", "template"}, "DaemonSet": {"spec", "template"},
	"Job": {"spec", "template"}, "CronJob": {"spec", "jobTemplate", "spec", "template"},
}

// TestRestricted: a namespace that enforces the restricted pod security standard, or the standard
// that the example sets, admits every pod of every example.
func TestRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, e := range claims(t, renderer(t)) {
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		if standard, _, _ := unstructured.NestedString(e.Claim.Object, "spec", "podSecurity"); standard != "" {
			level.Level = api.Level(standard)
		}
		t.Run(e.name, func(t *testing.T) {
			objects, err := render.Load(filepath.Join("testdata", e.name, convergeFile))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				path, ok := templates[o.GetKind()]
				if !ok {
					continue
				}
				raw, _, err := unstructured.NestedMap(o.Object, path...)
				if err != nil {
					t.Fatal(err)
				}
				var tpl corev1.PodTemplateSpec
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &tpl); err != nil {
					t.Fatal(err)
				}
				pods++
				if r := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &tpl.ObjectMeta, &tpl.Spec)); !r.Allowed {
					t.Errorf("Pods of %s %s are not admitted: %s", o.GetKind(), o.GetName(), r.ForbiddenDetail())
				}
			}
		})
	}
	if pods == 0 {
		t.Error("No example makes a pod: this test looks at the wrong paths.")
	}
}
