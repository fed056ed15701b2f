package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/structs"
)

// options decodes pod options from YAML, and returns the claim's spec too.
func options(t *testing.T, text string) (*appsv1.PodOptions, *structpb.Struct) {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	spec, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	o := &appsv1.PodOptions{}
	if err := structs.Decode(spec, o); err != nil {
		t.Fatal(err)
	}
	return o, spec
}

// TestCheckPods: options that no pod can have or that claims must not set are refused by name.
func TestCheckPods(t *testing.T) {
	const notYours = " is not for claims to set: choose another key"
	cases := map[string]struct{ reason, options, want string }{
		"None": {reason: "Nothing is asked for."},
		"All": {
			reason:  "What pods may have.",
			options: "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}}, podLabels: {team: shop, example.com/cost: '7'}, podAnnotations: {sidecar.istio.io/inject: 'false', cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}}",
		},
		"Affinity":   {reason: "A field that does not exist would be dropped without a word.", options: "{affinity: {podAntiAfinity: {}}}", want: `affinity is not that of core/v1: unknown field "podAntiAfinity"`},
		"Deep":       {reason: "Also deep inside.", options: "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {terms: []}}}}", want: `affinity is not that of core/v1: unknown field "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.terms"`},
		"Case":       {reason: "Names have one case: another one is another field.", options: "{affinity: {NodeAffinity: {}}}", want: `affinity is not that of core/v1: unknown field "NodeAffinity"`},
		"Neighbours": {reason: "Who keeps all namespaces' pods away from a region stops it.", options: "{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/region, labelSelector: {}, namespaceSelector: {}}]}}}", want: "affinity may not have namespaces or namespaceSelector"},
		"Beside":     {reason: "Nor is a pod to get beside another tenant's.", options: "{affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {topologyKey: kubernetes.io/hostname, namespaces: [bank]}}]}}}", want: "affinity may not have namespaces or namespaceSelector"},
		"Own":        {reason: "Pods of the claim's own namespace are its own affair.", options: "{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app.kubernetes.io/component: postgresql}}}]}}}"},
		"Long":       {reason: "It is in every pod's template.", options: "{affinity: {nodeAffinity: {}, x: '" + strings.Repeat("x", 17<<10) + "'}}", want: "affinity may have at most 16384 bytes, has "},
		"Selected":   {reason: "Pods are selected by this one.", options: "{podLabels: {app.kubernetes.io/instance: other}}", want: "podLabels: app.kubernetes.io/instance" + notYours},
		"Platform":   {reason: "A shop's objects are found by this one.", options: "{podLabels: {platform: other}}", want: "podLabels: platform" + notYours},
		"Jobs":       {reason: "The provider knows its Jobs by this one.", options: "{podLabels: {backup.example.com/backup: x}}", want: "podLabels: backup.example.com/backup" + notYours},
		"Value":      {reason: "The API server would refuse the pod.", options: "{podLabels: {team: 'a b'}}", want: "podLabels: team is no label: "},
		"Key":        {reason: "Or the key.", options: "{podAnnotations: {'a b': x}}", want: "podAnnotations: a b is no annotation: "},
		"Confined":   {reason: "No annotation takes confinement away.", options: "{podAnnotations: {container.apparmor.security.beta.kubernetes.io/app: unconfined}}", want: "podAnnotations: container.apparmor.security.beta.kubernetes.io/app" + notYours},
		"Annotation": {reason: "What Storeplane reads it writes.", options: "{podAnnotations: {storeplane.example.com/config-hash: x}}", want: "podAnnotations: storeplane.example.com/config-hash" + notYours},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := build.CheckPods(options(t, tc.options))
			if tc.want == "" {
				if err != nil {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || !compose.IsInvalid(err) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestPlace: each kind of affinity that a claim sets replaces the default of that kind.
func TestPlace(t *testing.T) {
	o, _ := options(t, "{nodeSelector: {disk: fast}, tolerations: [{key: gpu}], priorityClassName: high, affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}}")
	spread := build.AntiAffinity(build.Scope{Claim: "hello"}, "web")
	pod := corev1.PodSpec{Affinity: spread}
	build.Place(&pod, o)
	want := corev1.PodSpec{
		NodeSelector: o.NodeSelector, Tolerations: o.Tolerations, PriorityClassName: "high",
		Affinity: &corev1.Affinity{NodeAffinity: o.Affinity.NodeAffinity, PodAntiAffinity: spread.PodAntiAffinity},
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if spread.NodeAffinity != nil {
		t.Error("the defaults are shared and must not change")
	}
}

// TestPodMeta: Storeplane's own labels take precedence over those of a claim.
func TestPodMeta(t *testing.T) {
	o := &appsv1.PodOptions{PodLabels: map[string]string{"team": "shop", "a": "theirs"}, PodAnnotations: map[string]string{"b": "c"}}
	got := build.PodMeta(map[string]string{"a": "ours"}, nil, o)
	if diff := cmp.Diff(map[string]string{"a": "ours", "team": "shop"}, got.Labels); diff != "" {
		t.Errorf("labels: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"b": "c"}, got.Annotations); diff != "" {
		t.Errorf("annotations: -want, +got:\n%s", diff)
	}
}
