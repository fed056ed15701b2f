package gitops

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/gitops/states"
)

const configMapHead = `# The health checks and actions of Storeplane's kinds as data of Argo CD's ConfigMap, made
# of the folders beside: go test ./test/gitops -update. One entry a kind, since Amazon EKS
# takes no wildcards.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
data:
`

// TestConfigMap: the ConfigMap has the health checks and actions of all kinds, in the format that
// Argo CD reads
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#custom-health-checks).
func TestConfigMap(t *testing.T) {
	var want bytes.Buffer
	want.WriteString(configMapHead)
	for _, k := range slices.Sorted(slices.Values(kinds)) {
		for _, e := range []struct{ field, file string }{{"actions", "actions.yaml"}, {"health", "health.lua"}} {
			fmt.Fprintf(&want, "  resource.customizations.%s.%s: |\n", e.field, strings.ReplaceAll(k, "/", "_"))
			for line := range strings.Lines(read(t, "argocd", k, e.file)) {
				if strings.TrimSpace(line) != "" {
					want.WriteString("    ")
				}
				want.WriteString(line)
			}
		}
	}
	file := filepath.Join(root, "argocd", "argocd-cm.yaml")
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want.String(), read(t, "argocd", "argocd-cm.yaml")); diff != "" {
		t.Errorf("%s is not what the folders hold. Run: go test ./test/gitops -update\n-want, +got:\n%s", file, diff)
	}
	var cm struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(want.Bytes(), &cm); err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if got := cm.Data["resource.customizations.health."+strings.ReplaceAll(k, "/", "_")]; got != read(t, "argocd", k, "health.lua") {
			t.Errorf("%s: the ConfigMap has another script: %s", k, got)
		}
	}
	entries, err := filepath.Glob(filepath.Join(root, "argocd", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(kinds) {
		t.Errorf("want a folder for each of %v, got %v", kinds, entries)
	}
}

// TestClaimsHealth: the health checks of the claims' kinds are the same, except that a
// DatabaseCluster can hibernate.
func TestClaimsHealth(t *testing.T) {
	want := read(t, "argocd", "apps.example.com", "WebApp", "health.lua")
	if diff := cmp.Diff(want, read(t, "argocd", "platform.example.com", "EcommercePlatform", "health.lua")); diff != "" {
		t.Errorf("-WebApp, +EcommercePlatform:\n%s", diff)
	}
	hibernates := "if status.phase == \"Hibernated\" then\n  return health(\"Suspended\", \"Hibernated: no server runs\")\nend\n"
	if diff := cmp.Diff(want, strings.Replace(read(t, "argocd", "apps.example.com", "DatabaseCluster", "health.lua"), hibernates, "", 1)); diff != "" {
		t.Errorf("-WebApp, +DatabaseCluster:\n%s", diff)
	}
}

// actions are the actions of a kind, in the format of Argo CD's ConfigMap.
type actions struct {
	Discovery   string `json:"discovery.lua"`
	Definitions []struct {
		Name   string `json:"name"`
		Action string `json:"action.lua"`
	} `json:"definitions"`
}

func actionsOf(t *testing.T, kind string) actions {
	t.Helper()
	var a actions
	if err := yaml.UnmarshalStrict([]byte(read(t, "argocd", kind, "actions.yaml")), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// offered returns the names of the actions that are offered for an object, sorted.
func (a actions) offered(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	out, _ := run(t, a.Discovery, o).(map[string]any)
	names := make([]string, 0, len(out))
	for name, v := range out {
		if what, _ := v.(map[string]any); what["displayName"] == nil || what["iconClass"] == nil {
			t.Errorf("action %s of %s has no name or icon", name, o.GetKind())
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// do runs an action and returns the changed object.
func (a actions) do(t *testing.T, name string, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, d := range a.Definitions {
		if d.Name == name {
			out, _ := run(t, d.Action, o.DeepCopy()).(map[string]any)
			return &unstructured.Unstructured{Object: out}
		}
	}
	t.Fatalf("%s of %s is offered, and not defined", name, o.GetKind())
	return nil
}

// TestActions: each kind offers the expected actions, and an action changes only the field that
// it is for.
func TestActions(t *testing.T) {
	const now = "date !%Y-%m-%dT%XZ"
	annotation := func(key string) []string { return []string{"metadata", "annotations", key} }
	cases := map[string]struct {
		reason  string
		kind    string
		change  func(*unstructured.Unstructured)
		offered []string
		do      string
		path    []string
		want    any
	}{
		"Pause":      {reason: "Every kind can be paused.", kind: "WebApp", offered: []string{"pause", "reconcile"}, do: "pause", path: annotation("crossplane.io/paused"), want: "true"},
		"PauseShop":  {reason: "The provider propagates it.", kind: "EcommercePlatform", offered: []string{"pause", "reconcile"}, do: "pause", path: annotation("crossplane.io/paused"), want: "true"},
		"Resume":     {reason: "And resumed.", kind: "WebApp", change: annotate("crossplane.io/paused", "true"), offered: []string{"reconcile", "resume"}, do: "resume", path: annotation("crossplane.io/paused")},
		"Reconcile":  {reason: "Crossplane handles each new value once.", kind: "Restore", offered: []string{"pause", "reconcile"}, do: "reconcile", path: annotation("crossplane.io/reconcile-requested-at"), want: now},
		"Hibernate":  {reason: "A database sleeps.", kind: "DatabaseCluster", offered: []string{"hibernate", "pause", "reconcile"}, do: "hibernate", path: []string{"spec", "hibernated"}, want: true},
		"Wake":       {reason: "And wakes.", kind: "DatabaseCluster", change: field(true, "spec", "hibernated"), offered: []string{"pause", "reconcile", "wake"}, do: "wake", path: []string{"spec", "hibernated"}, want: false},
		"Composed":   {reason: "That of an EcommercePlatform follows its claim.", kind: "DatabaseCluster", change: composed, offered: []string{"pause", "reconcile"}, do: "pause", path: annotation("crossplane.io/paused"), want: "true"},
		"BackUp":     {reason: "A backup for each new value.", kind: "Backup", offered: []string{"pause", "reconcile", "run-now", "verify-now"}, do: "run-now", path: annotation("backup.example.com/run-now"), want: now},
		"Verify":     {reason: "So with verifications.", kind: "Backup", offered: []string{"pause", "reconcile", "run-now", "verify-now"}, do: "verify-now", path: annotation("backup.example.com/verify-now"), want: now},
		"Hold":       {reason: "A rollout is held back.", kind: "AppConfig", change: field(nil, "spec", "forProvider", "rollout"), offered: []string{"hold-rollout", "pause", "reconcile"}, do: "hold-rollout", path: []string{"spec", "forProvider", "rollout", "pause"}, want: true},
		"Continue":   {reason: "And goes on.", kind: "AppConfig", change: field(map[string]any{"pause": true}, "spec", "forProvider", "rollout"), offered: []string{"continue-rollout", "pause", "reconcile"}, do: "continue-rollout", path: []string{"spec", "forProvider", "rollout", "pause"}, want: false},
		"ClaimsHold": {reason: "That of a claim follows the claim.", kind: "AppConfig", change: composed, offered: []string{"pause", "reconcile"}, do: "reconcile", path: annotation("crossplane.io/reconcile-requested-at"), want: now},
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, file := range []string{"testdata/states.yaml", "../../internal/controller/appconfig/testdata/states.yaml", "../../internal/controller/backup/testdata/states.yaml", "../../internal/controller/restore/testdata/states.yaml"} {
		for _, s := range states.Load(t, file) {
			if s.Expect == states.Done {
				objects[s.Object.GetKind()] = s.Object
			}
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objects[tc.kind].DeepCopy()
			if tc.change != nil {
				tc.change(o)
			}
			a := actionsOf(t, kindOf(o))
			if diff := cmp.Diff(tc.offered, a.offered(t, o)); diff != "" {
				t.Errorf("%s\noffered: -want, +got:\n%s", tc.reason, diff)
			}
			got := a.do(t, tc.do, o)
			v, _, err := unstructured.NestedFieldNoCopy(got.Object, tc.path...)
			if err != nil || !cmp.Equal(tc.want, v) {
				t.Errorf("%s\nwant %v at %v, got %v, %v", tc.reason, tc.want, tc.path, v, err)
			}
			// The action changes no other field. Empty maps are ignored.
			unstructured.RemoveNestedField(got.Object, tc.path...)
			want := &unstructured.Unstructured{Object: fromLuaOf(t, o)}
			unstructured.RemoveNestedField(want.Object, tc.path...)
			for _, u := range []*unstructured.Unstructured{got, want} {
				for _, path := range [][]string{{"metadata", "annotations"}, {"spec", "forProvider", "rollout"}} {
					if m, ok, _ := unstructured.NestedMap(u.Object, path...); ok && len(m) == 0 {
						unstructured.RemoveNestedField(u.Object, path...)
					}
				}
			}
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("%s\nit changes more: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// fromLuaOf returns an object as a script that changes nothing returns it.
func fromLuaOf(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	out, _ := run(t, "return obj", o).(map[string]any)
	return out
}

func annotate(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: value}) }
}

func field(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if value == nil {
			unstructured.RemoveNestedField(o.Object, path...)
			return
		}
		_ = unstructured.SetNestedField(o.Object, value, path...)
	}
}

func composed(o *unstructured.Unstructured) {
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"kind": "EcommercePlatform", "name": "store"}}, "metadata", "ownerReferences")
}
