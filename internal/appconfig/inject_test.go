package appconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

const (
	oldBundle = "shop-config-0000000000"
	newBundle = "shop-config-1111111111"
)

func podOf(t testing.TB, text string) *corev1.PodSpec {
	t.Helper()
	out := &corev1.PodSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInto(t *testing.T) {
	const injected = `
containers:
- name: app
  env:
  - {name: OWN, value: x}
  - {name: PASSWORD, valueFrom: {secretKeyRef: {name: shop-config-1111111111, key: PASSWORD}}}
  - {name: TITLE, valueFrom: {configMapKeyRef: {name: shop-config-1111111111, key: TITLE}}}
- name: side
`
	variables := []any{
		map[string]any{"name": "PASSWORD", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": newBundle, "key": "PASSWORD"}}},
		map[string]any{"name": "TITLE", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": newBundle, "key": "TITLE"}}},
	}
	spec := func(fields map[string]any) map[string]any { return fields }
	containers := func(c ...any) map[string]any { return map[string]any{"containers": c} }
	mount := []any{map[string]any{"name": "shop-config", "mountPath": "/etc/shop", "readOnly": true}}
	volumes := []any{map[string]any{"name": "shop-config", "projected": map[string]any{"sources": []any{
		map[string]any{"configMap": map[string]any{"name": newBundle}}, map[string]any{"secret": map[string]any{"name": newBundle}},
	}}}}
	files := &configv1.Inject{Env: new(false), MountPath: "/etc/shop"}

	cases := map[string]struct {
		reason     string
		annotation string
		pod        string
		containers []string
		inject     *configv1.Inject
		spec       map[string]any
		current    bool
		refusal    string
	}{
		"Fresh":   {reason: "The first container gets each key by its own entry.", pod: "containers: [{name: app}, {name: side}]", spec: spec(containers(map[string]any{"name": "app", "env": variables}))},
		"Done":    {reason: "Nothing is left to do.", annotation: newBundle, pod: injected, current: true, spec: spec(containers(map[string]any{"name": "app", "env": variables}))},
		"Behind":  {reason: "An old bundle is replaced.", annotation: oldBundle, pod: injected, spec: spec(containers(map[string]any{"name": "app", "env": variables}))},
		"Own":     {reason: "A container's own variable wins.", annotation: newBundle, pod: "containers: [{name: app, env: [{name: TITLE, value: x}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: mine, key: p}}}]}]", current: true, spec: nil},
		"Named":   {reason: "The containers that are named get it, and what others have goes.", annotation: newBundle, containers: []string{"side"}, pod: injected, spec: spec(containers(map[string]any{"name": "side", "env": variables}))},
		"NoSuch":  {reason: "A container that is not there is said.", containers: []string{"web"}, pod: injected, refusal: "has no container web"},
		"Stray":   {reason: "A variable whose key is gone goes too.", annotation: newBundle, pod: injected + "  env: [{name: X, valueFrom: {configMapKeyRef: {name: shop-config-0000000000, key: X}}}]", spec: spec(containers(map[string]any{"name": "app", "env": variables}))},
		"Files":   {reason: "All keys are files of one volume.", inject: files, annotation: newBundle, pod: "containers: [{name: app}]", spec: spec(map[string]any{"containers": []any{map[string]any{"name": "app", "volumeMounts": mount}}, "volumes": volumes})},
		"Mounted": {reason: "Nothing is left to do.", inject: files, annotation: newBundle, current: true, pod: "containers: [{name: app, volumeMounts: [{name: shop-config, mountPath: /etc/shop, readOnly: true}]}]\nvolumes: [{name: shop-config, projected: {sources: [{configMap: {name: shop-config-1111111111}}, {secret: {name: shop-config-1111111111}}]}}]", spec: spec(map[string]any{"containers": []any{map[string]any{"name": "app", "volumeMounts": mount}}, "volumes": volumes})},
		"Volume":  {reason: "A volume of that name is not overwritten.", inject: files, pod: "containers: [{name: app}]\nvolumes: [{name: shop-config, emptyDir: {}}]", refusal: "has a volume shop-config of its own"},
		"Path":    {reason: "Nor is what is mounted there.", inject: files, pod: "containers: [{name: app, volumeMounts: [{name: data, mountPath: /etc/shop}]}]", refusal: "has volume data at /etc/shop"},
		"Neither": {reason: "Only the annotation.", inject: &configv1.Inject{Env: new(false)}, annotation: newBundle, pod: "containers: [{name: app}]", current: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := Injection{
				AppConfig: "a", Bundle: newBundle, Containers: tc.containers,
				Params:  &configv1.AppConfigParameters{Application: "shop", Inject: tc.inject},
				Content: Content{Config: map[string]string{"TITLE": "t"}, Secret: map[string][]byte{"PASSWORD": []byte("p")}},
			}
			annotations := map[string]string{}
			if tc.annotation != "" {
				annotations[Annotation("a")] = tc.annotation
			}
			p := i.Into(annotations, podOf(t, tc.pod))
			if p.Refusal != tc.refusal {
				t.Errorf("%s\nInto(...): want refusal %q, got %q", tc.reason, tc.refusal, p.Refusal)
			}
			if tc.refusal != "" {
				return
			}
			if p.Current != tc.current {
				t.Errorf("%s\nInto(...): want current %t, got %t", tc.reason, tc.current, p.Current)
			}
			got, _ := p.Template["spec"].(map[string]any)
			if diff := cmp.Diff(tc.spec, got); diff != "" {
				t.Errorf("%s\nInto(...): -want, +got:\n%s", tc.reason, diff)
			}
			want := map[string]any{"annotations": map[string]any{"bundle.config.example.com/a": newBundle}}
			if diff := cmp.Diff(want, p.Template["metadata"]); diff != "" {
				t.Errorf("%s\nInto(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunOf(t *testing.T) {
	cases := map[string]struct {
		reason     string
		annotation string
		pod        string
		want       Run
	}{
		"None":       {reason: "It knows nothing of us.", pod: "containers: [{name: app, envFrom: [{configMapRef: {name: other}}]}]"},
		"Annotation": {reason: "The annotation says it.", annotation: newBundle, pod: "containers: [{name: app}]", want: Run{Bundle: newBundle, Annotated: true}},
		"EnvFrom":    {reason: "All variables at once.", pod: "containers: [{name: app, envFrom: [{configMapRef: {name: shop-config-1111111111}}]}]", want: Run{Bundle: newBundle}},
		"Env":        {reason: "One variable.", pod: "initContainers: [{name: app, env: [{name: X, valueFrom: {secretKeyRef: {name: shop-config-1111111111, key: x}}}]}]", want: Run{Bundle: newBundle}},
		"Volume":     {reason: "A volume.", pod: "containers: []\nvolumes: [{name: x, configMap: {name: shop-config-1111111111}}]", want: Run{Bundle: newBundle}},
		"Projected":  {reason: "A part of one.", pod: "containers: []\nvolumes: [{name: x, projected: {sources: [{secret: {name: shop-config-1111111111}}]}}]", want: Run{Bundle: newBundle}},
		"Reader":     {reason: "The stable name.", pod: "containers: []\nvolumes: [{name: x, secret: {secretName: shop-config}}]", want: Run{Reader: true}},
		"Annotated":  {reason: "The stable name, once it was changed.", annotation: oldBundle, pod: "containers: [{name: app, envFrom: [{secretRef: {name: shop-config}}]}]", want: Run{Bundle: oldBundle, Annotated: true, Reader: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{}
			if tc.annotation != "" {
				annotations[Annotation("a")] = tc.annotation
			}
			if diff := cmp.Diff(tc.want, RunOf("a", "shop", annotations, podOf(t, tc.pod))); diff != "" {
				t.Errorf("%s\nRunOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
