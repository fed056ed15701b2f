package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// tool returns the path of a program on the PATH, and skips the test if it is missing. make test
// adds helm and crane to the PATH; kubectl is the machine's.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not on the PATH: hack/helm.sh says where helm and crane are, and go run ./test/cluster tools kubectl where kubectl is", name)
	}
	return path
}

// output returns the standard output of a tool, or its standard error if it fails.
func output(t *testing.T, name string, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, name), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return stderr.Bytes(), err
	}
	return out, nil
}

// testChart writes the archive of the chart in this tree and returns its path.
func testChart(t *testing.T) string {
	t.Helper()
	needs := requirements{kubernetes: "1.30", crossplane: "2.2"}
	chart, err := testRelease(t).chart(needs, os.DirFS("../../package/helm"), os.DirFS("../../package/install"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), testRelease(t).chartFile())
	var archive bytes.Buffer
	if err := pack(&archive, chartName, chart); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rendered returns the objects that helm renders from the chart, by identity.
func rendered(t *testing.T, chart string, values ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	out, err := output(t, "helm", append([]string{"template", "storeplane", chart, "--namespace", "crossplane-system", "--kube-version", "1.36.0"}, values...)...)
	if err != nil {
		t.Fatalf("helm template: %v: %s", err, out)
	}
	return byIdentity(t, out)
}

// byIdentity returns the objects of a manifest by identity. Documents that contain only comments
// are skipped.
func byIdentity(t *testing.T, manifest []byte) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, u := range objectsOf(t, bytes.TrimPrefix(manifest, separator)) {
		if u.Object == nil {
			continue
		}
		if out[identity(u)] != nil {
			t.Errorf("%s is there twice", identity(u))
		}
		out[identity(u)] = u
	}
	return out
}

// manifest returns the objects of install.yaml as a release of this tree has them, by identity.
// Each odd argument is replaced by the one after it.
func manifest(t *testing.T, replaced ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := testRelease(t).manifests(os.DirFS("../../package/install"))
	if err != nil {
		t.Fatal(err)
	}
	return byIdentity(t, []byte(strings.NewReplacer(replaced...).Replace(string(files[installManifest]))))
}

// TestChart: Helm installs what the manifests do, object by object.
func TestChart(t *testing.T) {
	const settings = "imageRegistry: r.example.com/own\nbackup: {type: s3, bucket: backups}\n"
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte("settings:\n  "+strings.ReplaceAll(settings, "\n", "\n  ")), 0o600); err != nil {
		t.Fatal(err)
	}
	without := func(prefixes ...string) map[string]*unstructured.Unstructured {
		out := manifest(t)
		for name := range out {
			for _, p := range prefixes {
				if strings.HasPrefix(name, p) {
					delete(out, name)
				}
			}
		}
		return out
	}
	admission := []string{}
	files, err := testRelease(t).installed(os.DirFS("../../package/install"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range byIdentity(t, files["admission.yaml"]) {
		admission = append(admission, name)
	}
	withSettings := manifest(t)
	data := map[string]any{}
	if err := yaml.Unmarshal([]byte(settings), &data); err != nil {
		t.Fatal(err)
	}
	withSettings["EnvironmentConfig.apiextensions.crossplane.io storeplane"] = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
		"metadata": map[string]any{"name": "storeplane", "annotations": map[string]any{keep: kept}},
		"data":     data,
	}}
	cases := map[string]struct {
		reason string
		values []string
		want   map[string]*unstructured.Unstructured
	}{
		"Defaults":    {reason: "Without values it is install.yaml.", want: manifest(t)},
		"Same":        {reason: "The registry that the packages are named after is no mirror.", values: []string{"--set", "registry=r.example.com/a/b"}, want: manifest(t)},
		"NoPolicies":  {reason: "A cluster may have network policies of its own.", values: []string{"--set", "networkPolicies.enabled=false"}, want: without("NetworkPolicy")},
		"NoGuardrail": {reason: "The guardrails can be left out, and not the limits of the provider and the servers.", values: []string{"--set", "guardrails.enabled=false"}, want: without(admission...)},
		"Namespaces": {
			reason: "Every mention of Crossplane's namespace follows, in policies too.",
			values: []string{"--set", "crossplane.namespace=platform,networkPolicies.prometheusNamespace=metrics"},
			want:   manifest(t, "crossplane-system", "platform", "metadata.name: monitoring", "metadata.name: metrics"),
		},
		"Settings": {reason: "The settings are an object that helm uninstall leaves.", values: []string{"--values", file}, want: withSettings},
	}
	chart := testChart(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rendered(t, chart, tc.values...)); diff != "" {
				t.Errorf("%s\n-manifests, +chart:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChartMirror: one value sets a mirror for Helm and for kubectl, with the same result.
func TestChartMirror(t *testing.T) {
	const mirror = "10.0.0.5:5000/mirrored/storeplane"
	dir := t.TempDir()
	files, err := testRelease(t).installed(os.DirFS("../../package/install"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range kustomizable(files) {
		write(t, filepath.Join(dir, "manifests", name), string(data))
	}
	overlay := os.DirFS("../../package/release/mirror")
	for _, name := range []string{"kustomization.yaml", "image-config.yaml", "registry.yaml"} {
		data, err := fs.ReadFile(overlay, name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "registry.yaml" {
			data = bytes.ReplaceAll(data, []byte("registry: REGISTRY"), []byte("registry: "+mirror))
		}
		write(t, filepath.Join(dir, "mirror", name), string(testRelease(t).inText(requirements{}, data)))
	}
	out, err := output(t, "kubectl", "kustomize", filepath.Join(dir, "mirror"))
	if err != nil {
		t.Fatalf("kubectl kustomize: %v: %s", err, out)
	}
	want := byIdentity(t, out)
	packages := byIdentity(t, files[packagesFile])
	maps.Copy(want, packages)
	got := rendered(t, testChart(t), "--set", "registry="+mirror)
	// Kustomize adds line breaks to expressions of several lines, which do not change their
	// meaning in CEL.
	spaces := cmp.Comparer(func(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) })
	if diff := cmp.Diff(want, got, spaces); diff != "" {
		t.Errorf("-kubectl, +chart:\n%s", diff)
	}
	for name, u := range got {
		text, err := yaml.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		switch named := strings.Contains(string(text), "r.example.com"); {
		case packages[name] != nil:
			if diff := cmp.Diff(packages[name], u); diff != "" {
				t.Errorf("%s keeps its name, by which dependencies and Compositions find it:\n%s", name, diff)
			}
		case named && u.GetName() != "storeplane-mirror":
			t.Errorf("%s names the registry that is mirrored:\n%s", name, text)
		}
	}
	config := got["ImageConfig.pkg.crossplane.io storeplane-mirror"]
	spec := map[string]any{
		"matchImages":  []any{map[string]any{"type": "Prefix", "prefix": "r.example.com/a/b/"}},
		"rewriteImage": map[string]any{"prefix": mirror + "/"},
	}
	if config == nil || cmp.Diff(spec, config.Object["spec"]) != "" {
		t.Errorf("Crossplane is to pull from the mirror: got %v", config)
	}
	function := got["ImageConfig.pkg.crossplane.io storeplane-function"]
	if prefix := nested(t, function, "spec", "matchImages").([]any)[0].(map[string]any)["prefix"]; prefix != mirror+"/function-storeplane" {
		t.Errorf("Crossplane finds a runtime configuration by where a package is pulled from: got %v", prefix)
	}
}

func nested(t *testing.T, u *unstructured.Unstructured, fields ...string) any {
	t.Helper()
	v, ok, err := unstructured.NestedFieldNoCopy(u.Object, fields...)
	if err != nil || !ok {
		t.Fatalf("%s has no %v: %v", identity(u), fields, err)
	}
	return v
}

func TestChartRefuses(t *testing.T) {
	chart := testChart(t)
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"NoPath":     {reason: "A registry alone has no place for packages.", args: []string{"--set", "registry=registry.example.com"}, want: "does not match pattern"},
		"Unknown":    {reason: "A value that is not known may be a mistake.", args: []string{"--set", "guardrail.enabled=false"}, want: "'guardrail' not allowed"},
		"Kubernetes": {reason: "The API server would refuse the policies.", args: []string{"--kube-version", "1.29.9"}, want: "chart requires kubeVersion: >=1.30.0-0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := output(t, "helm", append([]string{"template", "storeplane", chart}, tc.args...)...)
			if err == nil || !strings.Contains(string(out), tc.want) {
				t.Errorf("%s\nwant an error with %q, got %v: %s", tc.reason, tc.want, err, out)
			}
		})
	}
}

func TestChartLint(t *testing.T) {
	if out, err := output(t, "helm", "lint", "--strict", "--kube-version", "1.36.0", testChart(t)); err != nil {
		t.Errorf("helm lint: %v: %s", err, out)
	}
}
