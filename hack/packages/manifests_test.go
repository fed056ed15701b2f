package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func testRelease(t *testing.T) release {
	t.Helper()
	r, err := newRelease("r.example.com/a/b", "v9.8.7")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestManifests(t *testing.T) {
	const role, budget = "kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1\n", "kind: PodDisruptionBudget\napiVersion: policy/v1\n"
	const function = "kind: Function\napiVersion: pkg.crossplane.io/v1\n"
	const escrow = "kind: Namespace\napiVersion: v1\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n"
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   map[string]string
	}{
		"Order": {
			reason: "Packages come last, whatever the other files are called.",
			files:  map[string]string{"packages.yaml": function, "roles.yaml": role, "budget.yaml": budget},
			want:   map[string]string{prerequisites: budget + "---\n" + role, installManifest: budget + "---\n" + role + "---\n" + function, uninstallManifest: budget + "---\n" + role},
		},
		"Kept": {
			reason: "What outlives an installation is not deleted with it.",
			files:  map[string]string{"escrow.yaml": role + "---\n" + escrow, "roles.yaml": role},
			want:   map[string]string{prerequisites: role + "---\n" + escrow + "---\n" + role, installManifest: role + "---\n" + escrow + "---\n" + role, uninstallManifest: role + "---\n" + role},
		},
		"Example": {
			reason: "What is there to be edited first is not installed.",
			files:  map[string]string{"settings.example.yaml": role, "roles.yaml": role},
			want:   map[string]string{prerequisites: role, installManifest: role, uninstallManifest: role},
		},
		"Names": {
			reason: "A capital name that is part of another one stays.",
			files:  map[string]string{"a.yaml": role + "env: STOREPLANE_IMAGE_REGISTRY\nat: REGISTRY/x:VERSION\n"},
			want: map[string]string{
				prerequisites:     role + "env: STOREPLANE_IMAGE_REGISTRY\nat: r.example.com/a/b/x:v9.8.7\n",
				installManifest:   role + "env: STOREPLANE_IMAGE_REGISTRY\nat: r.example.com/a/b/x:v9.8.7\n",
				uninstallManifest: role + "env: STOREPLANE_IMAGE_REGISTRY\nat: r.example.com/a/b/x:v9.8.7\n",
			},
		},
		"NoNewline": {
			reason: "A file without a line's end does not run into the next one.",
			files:  map[string]string{"a.yaml": strings.TrimSpace(role), "b.yaml": budget + "\n"},
			want:   map[string]string{prerequisites: role + "---\n" + budget, installManifest: role + "---\n" + budget, uninstallManifest: role + "---\n" + budget},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := fstest.MapFS{}
			for f, data := range tc.files {
				dir[f] = &fstest.MapFile{Data: []byte(data)}
			}
			files, err := testRelease(t).manifests(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for f, data := range files {
				got[f] = string(data)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestManifestsRefuse(t *testing.T) {
	_, err := testRelease(t).manifests(fstest.MapFS{"monitoring.yaml": &fstest.MapFile{Data: []byte("kind: PodMonitor\napiVersion: monitoring.coreos.com/v1\n")}})
	if err == nil {
		t.Fatal("A cluster without the operator of a kind could not take the manifest: no error")
	}
	want := "cannot install monitoring.yaml: it needs the kind PodMonitor of monitoring.coreos.com, which a cluster may not have: keep it out of package/install"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestInstalled: the manifests of a release contain all objects of package/install.
func TestInstalled(t *testing.T) {
	const dir = "../../package/install"
	files, err := testRelease(t).manifests(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for name, data := range files {
		objects := objectsOf(t, data)
		for _, u := range objects {
			got[identity(u)] = true
		}
		if name != installManifest {
			continue
		}
		if last := objects[len(objects)-1]; last.GroupVersionKind().Group != "pkg.crossplane.io" {
			t.Errorf("want the packages last, got %s", identity(last))
		}
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sources {
		if strings.HasSuffix(f, ".example.yaml") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objectsOf(t, testRelease(t).inManifest(b)) {
			if !got[identity(u)] {
				t.Errorf("%s is in %s and in no manifest of a release", identity(u), f)
			}
		}
	}
}

// TestUninstalled: uninstalling deletes all objects except those of the escrow, which holds the
// copies of keys.
func TestUninstalled(t *testing.T) {
	files, err := testRelease(t).manifests(os.DirFS("../../package/install"))
	if err != nil {
		t.Fatal(err)
	}
	deleted := map[string]bool{}
	for _, u := range objectsOf(t, files[uninstallManifest]) {
		deleted[identity(u)] = true
	}
	for _, u := range objectsOf(t, files[prerequisites]) {
		if stays := strings.HasSuffix(identity(u), " storeplane-escrow"); stays == deleted[identity(u)] {
			t.Errorf("%s: want it deleted with an installation: %t", identity(u), !stays)
		}
	}
}

func objectsOf(t *testing.T, manifest []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

func identity(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + " " + u.GetName()
}

// TestPodsOfThePlatform: the pods of each program are spread over nodes and zones and have a
// disruption budget, and both select the pods that Crossplane creates.
func TestPodsOfThePlatform(t *testing.T) {
	files, err := testRelease(t).manifests(os.DirFS("../../package/install"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		labels map[string]string
		token  bool
	}{
		"storeplane-function": {reason: "A claim needs a function at any time.", labels: map[string]string{"pkg.crossplane.io/function": "a-b-function-storeplane"}},
		"storeplane-provider": {reason: "A leader needs another replica to follow it.", labels: map[string]string{"pkg.crossplane.io/provider": "a-b-provider-storeplane"}, token: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var budgets, configs int
			for _, u := range objectsOf(t, files[prerequisites]) {
				if u.GetName() != name {
					continue
				}
				switch u.GetKind() {
				case "PodDisruptionBudget":
					budgets++
					got, _, err := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
					if diff := cmp.Diff(tc.labels, got); err != nil || diff != "" {
						t.Errorf("%s\nits budget selects: %v, -want, +got:\n%s", tc.reason, err, diff)
					}
				case "DeploymentRuntimeConfig":
					configs++
					template, _, err := unstructured.NestedMap(u.Object, "spec", "deploymentTemplate", "spec", "template", "spec")
					if err != nil {
						t.Fatal(err)
					}
					checkPod(t, template, tc.labels, tc.token)
				}
			}
			if budgets != 1 || configs != 1 {
				t.Errorf("%s\nwant a budget and a runtime configuration, got %d and %d", tc.reason, budgets, configs)
			}
		})
	}
}

func checkPod(t *testing.T, template map[string]any, labels map[string]string, token bool) {
	t.Helper()
	b, err := yaml.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.PodSpec{}
	if err := yaml.UnmarshalStrict(b, pod); err != nil {
		t.Fatal(err)
	}
	var over []string
	for _, c := range pod.TopologySpreadConstraints {
		over = append(over, c.TopologyKey)
		if diff := cmp.Diff(labels, c.LabelSelector.MatchLabels); diff != "" {
			t.Errorf("spread over %s: -want, +got:\n%s", c.TopologyKey, diff)
		}
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway {
			t.Errorf("spread over %s: a cluster of one node must do", c.TopologyKey)
		}
	}
	slices.Sort(over)
	if diff := cmp.Diff([]string{corev1.LabelHostname, corev1.LabelTopologyZone}, over); diff != "" {
		t.Errorf("spread over: -want, +got:\n%s", diff)
	}
	if m := pod.AutomountServiceAccountToken; (m == nil || *m) != token {
		t.Errorf("want a token in the pod: %t", token)
	}
	// The programs stop within 28 seconds.
	if g := pod.TerminationGracePeriodSeconds; g == nil || *g != 30 {
		t.Errorf("want a grace period of 30 seconds, got %v", g)
	}
	r := pod.Containers[0].Resources
	if r.Requests.Cpu().IsZero() || r.Requests.Memory().IsZero() || r.Limits.Memory().IsZero() {
		t.Errorf("want requests and a limit of memory, got %+v", r)
	}
	for _, e := range pod.Containers[0].Env {
		if e.Name != "GOMEMLIMIT" {
			continue
		}
		// Go's unit is that of Kubernetes with a B appended.
		soft, err := resource.ParseQuantity(strings.TrimSuffix(e.Value, "B"))
		if hard := r.Limits.Memory().Value(); err != nil || soft.Value() > hard*95/100 || soft.Value() < hard*80/100 {
			t.Errorf("want a GOMEMLIMIT a little below the limit of memory %s, got %s", r.Limits.Memory(), e.Value)
		}
	}
}
