package guardrails_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// crossplane is the user that applies what Crossplane composes.
const crossplane = "system:serviceaccount:crossplane-system:crossplane"

// provider is the user of provider-storeplane.
const provider = "system:serviceaccount:crossplane-system:storeplane-provider"

// gate is an API server with the kinds of Storeplane and the policies of package/install.
type gate struct {
	client.Client

	// composing is the client of Crossplane.
	composing client.Client

	// providing is the client of the provider and serving that of a database's servers, both with
	// all permissions.
	providing, serving client.Client

	// as returns the client of a user, with the permissions that Roles give it.
	as func(user string) client.Client
}

func newGate(t *testing.T) *gate {
	t.Helper()
	p := planetest.Start(t, false)
	as := func(user string, groups ...string) client.Client {
		config := p.Config(plane.Admin)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return planetest.Client(t, config)
	}
	const all = "system:masters"
	g := &gate{
		Client:    planetest.Client(t, p.Config(plane.Admin)),
		composing: as(crossplane, all), providing: as(provider, all), serving: as(server, all),
		as: func(user string) client.Client { return as(user) },
	}
	planetest.Define(t, g, append(environmentConfigs(t), ownKinds(t)...)...)
	for _, file := range []string{"admission.yaml", "provider-admission.yaml", "servers-admission.yaml", "escrow.yaml"} {
		if err := plane.Apply(t.Context(), g, "../../package/install/"+file); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// environmentConfigs returns the definition of EnvironmentConfig from Crossplane's module.
func environmentConfigs(t *testing.T) []*extv1.CustomResourceDefinition {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/crossplane/crossplane/v2")
	cmd.Dir = "../../test/cluster/tools/crossplane"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	dir, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(dir)) == "" {
		// Only the tools of the test cluster need that module, and they are modules of their own.
		// make test fetches it where hack/crossplane.sh builds them.
		t.Skipf("Crossplane's module is not there: make up fetches it: %v", err)
	}
	return definitions(t, filepath.Join(strings.TrimSpace(string(dir)), "cluster/crds/apiextensions.crossplane.io_environmentconfigs.yaml"))
}

// ownKinds returns the definitions of the kinds that the provider reconciles.
func ownKinds(t *testing.T) []*extv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../package/provider/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find the provider's definitions: %v", err)
	}
	var out []*extv1.CustomResourceDefinition
	for _, f := range files {
		out = append(out, definitions(t, f)...)
	}
	return out
}

// definitions returns the definitions in a file.
func definitions(t *testing.T, file string) []*extv1.CustomResourceDefinition {
	t.Helper()
	all, err := render.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*extv1.CustomResourceDefinition
	for _, u := range all {
		crd := &extv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
			t.Fatal(err)
		}
		out = append(out, crd)
	}
	return out
}

// soon is how long the tests wait for the API server.
const soon = 60 * time.Second

func (g *gate) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := g.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// settings replaces the settings of the installation, or removes them if data is nil.
func (g *gate) settings(t *testing.T, data map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig", "data": data}}
	u.SetName("storeplane")
	if err := client.IgnoreNotFound(g.Delete(t.Context(), u.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	if data != nil {
		g.create(t, u)
	}
}

// try returns why the API server refuses to create a claim, or "". Nothing is stored.
func (g *gate) try(ctx context.Context, u *unstructured.Unstructured) string {
	return refusal(g.Create(ctx, u.DeepCopy(), client.DryRunAll))
}

// refusal returns the message of a policy, without the text before it that names the claim and the
// policy.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	_, words, ok := strings.Cut(err.Error(), "denied request: ")
	if !ok || !kerrors.IsForbidden(err) {
		return "not by a policy: " + err.Error()
	}
	return words
}

// judge waits until the API server applies the settings: until it refuses a claim of an unknown
// image with this message, or accepts it if want is "".
func (g *gate) judge(t *testing.T, want string) {
	t.Helper()
	probe := claim(t, "WebApp", "{image: unknown.example.com/app:v1}")
	planetest.Eventually(t, soon, "the settings are known", func() error {
		if got := g.try(t.Context(), probe); got != want {
			return fmt.Errorf("want %q, got %q", want, got)
		}
		return nil
	})
}

// words returns the messages of each failed rule. The API server reports those of one rule at a
// time.
func words(failures map[string][]string) []string {
	var out []string
	for rule, messages := range failures {
		// The definition refuses more pods than the cap itself.
		if rule != guardrails.ReplicaCap {
			out = append(out, strings.Join(messages, "; "))
		}
	}
	slices.Sort(out)
	return out
}

func TestAdmission(t *testing.T) {
	g := newGate(t)
	for _, tc := range []struct {
		name string
		test func(*testing.T, *gate)
	}{
		{"Bare", testBare},
		{"Claims", testClaims},
		{"Property", testProperty},
		{"Updates", testUpdates},
		{"Nonsense", testNonsense},
		{"Orphans", testOrphans},
		{"Escrow", testEscrow},
		{"Provider", testProvider},
		{"Servers", testServers},
		{"ServersConfigMaps", testServersConfigMaps},
		{"References", testReferences},
		{"Environment", testEnvironment},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, g) })
	}
}

// testBare: without settings every registry is approved, and the rules for production still hold.
func testBare(t *testing.T, g *gate) {
	latest := claim(t, "WebApp", "{environment: production, image: 'unknown.example.com/app:latest'}")
	want := "image is unknown.example.com/app:latest" + meansLatest
	planetest.Eventually(t, soon, "the policies are known", func() error {
		if got := g.try(t.Context(), latest); got != want {
			return fmt.Errorf("want %q, got %q", want, got)
		}
		return nil
	})
	g.judge(t, "")
	for _, data := range []map[string]any{
		{},
		{"storageClassName": "fast"},
		{"policy": nil},
		{"policy": map[string]any{}},
		{"policy": map[string]any{"approvedRegistries": nil}},
		{"policy": map[string]any{"approvedRegistries": []any{}}},
	} {
		// Waits until the API server no longer applies the previous settings.
		g.settings(t, map[string]any{"policy": map[string]any{"approvedRegistries": []any{"none.example.com"}}})
		g.judge(t, "image is unknown.example.com/app:v1, which is from no approved registry: use an image from none.example.com")
		g.settings(t, data)
		g.judge(t, "")
	}
}

// approve installs the settings that the claims of the table are checked against.
func (g *gate) approve(t *testing.T) {
	t.Helper()
	p, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&installation)
	if err != nil {
		t.Fatal(err)
	}
	g.settings(t, map[string]any{"policy": p})
	g.judge(t, "image is unknown.example.com/app:v1"+fromWhere)
}

// testClaims: the API server and the functions give the same verdict on each claim of the table.
func testClaims(t *testing.T, g *gate) {
	g.approve(t)
	for name, tc := range claims {
		t.Run(name, func(t *testing.T) {
			got := g.try(t.Context(), claim(t, tc.kind, tc.spec))
			if want := words(tc.failures); len(want) == 0 && got != "" || len(want) > 0 && !slices.Contains(want, got) {
				t.Errorf("%s\nwant one of %q, got %q", tc.reason, want, got)
			}
		})
	}
	t.Run("ReplicaCap", func(t *testing.T) {
		err := g.Create(t.Context(), claim(t, "WebApp", "{environment: production, image: 'nginx:1', replicas: 11}"), client.DryRunAll)
		if !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), "replicas may be at most 10") {
			t.Errorf("want the definition to refuse it, got %v", err)
		}
		if got := g.try(t.Context(), claim(t, "WebApp", "{environment: production, image: 'nginx:1', replicas: 10}")); got != "" {
			t.Errorf("want it accepted, got %q", got)
		}
	})
}

// testProperty: they give the same verdict on any claim.
func testProperty(t *testing.T, g *gate) {
	g.approve(t)
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom([]string{"WebApp", "EcommercePlatform", "DatabaseCluster"}).Draw(rt, "kind")
		u := claim(t, kind, "{}")
		u.Object["spec"] = drawSpec(rt, kind)
		failures := failuresOf(check(t, u, installation))
		got := g.try(t.Context(), u)
		if want := words(failures); len(want) == 0 && got != "" || len(want) > 0 && !slices.Contains(want, got) {
			rt.Fatalf("want one of %q, got %q", want, got)
		}
	})
}

func drawSpec(t *rapid.T, kind string) map[string]any {
	spec := map[string]any{"environment": rapid.SampledFrom([]string{"production", "production", "staging"}).Draw(t, "environment")}
	if kind != "DatabaseCluster" {
		drawIngress(t, spec)
	}
	switch kind {
	case "WebApp":
		drawTier(t, spec)
	case "EcommercePlatform":
		for _, tier := range []string{"frontend", "backend"} {
			part := map[string]any{}
			drawTier(t, part)
			spec[tier] = part
		}
		database := map[string]any{}
		drawResources(t, database)
		spec["database"] = database
	default:
		spec["size"], spec["version"] = int64(1), "17"
		drawResources(t, spec)
	}
	return spec
}

// drawIngress draws hosts, annotations and classes that are similar to the allowed ones.
func drawIngress(t *rapid.T, into map[string]any) {
	if rapid.IntRange(0, 2).Draw(t, "ingress") > 0 {
		return
	}
	annotations := map[string]any{}
	for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"example.com/rate", "example.com/rates", "traefik.io/a", "traefik.io", "a", "z"}), 0, 3).Draw(t, "annotations") {
		annotations[key] = "x"
	}
	host := rapid.SampledFrom([]string{"shop.example.com", "apps.example.com", "a.apps.example.com", "xapps.example.com", "default.example.org", "other.example.org"}).Draw(t, "host")
	ingress := map[string]any{"host": host, "annotations": annotations}
	switch rapid.IntRange(0, 2).Draw(t, "tls") {
	case 1:
		ingress["tls"] = map[string]any{"issuer": "x"}
	case 2:
		ingress["tls"] = map[string]any{"secretName": "x"}
	}
	switch rapid.IntRange(0, 3).Draw(t, "controller") {
	case 1:
		ingress["className"] = rapid.SampledFrom([]string{"", "nginx", "internal", "public"}).Draw(t, "class")
	case 2:
		// The listener of the gateway has the certificate.
		delete(ingress, "tls")
		ingress["gateway"] = map[string]any{"name": rapid.SampledFrom([]string{"public", "own", "nginx"}).Draw(t, "gateway"), "namespace": rapid.SampledFrom([]string{"infra", "default"}).Draw(t, "of")}
	case 3:
		annotations["kubernetes.io/ingress.class"] = rapid.SampledFrom([]string{"nginx", "internal"}).Draw(t, "named")
	}
	into["ingress"] = ingress
}

func drawScheduling(t *rapid.T, into map[string]any) {
	labels, keys := map[string]any{}, []string{"disk", "disks", "zone", "a"}
	for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), 0, 2).Draw(t, "labels") {
		labels[key] = rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "value")
	}
	var tolerations []any
	for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"", "example.com/gpu", "example.com/gpus", "a"}), 0, 3).Draw(t, "taints") {
		o := map[string]any{"operator": "Exists"}
		if key != "" {
			o["key"] = key
		}
		tolerations = append(tolerations, o)
	}
	if len(labels) > 0 {
		into["nodeSelector"] = labels
	}
	if tolerations != nil {
		into["tolerations"] = tolerations
	}
	if p := rapid.SampledFrom([]string{"", "", "high", "higher"}).Draw(t, "priority"); p != "" {
		into["priorityClassName"] = p
	}
}

func drawTier(t *rapid.T, into map[string]any) {
	into["image"] = drawImage(t)
	drawScheduling(t, into)
	drawResources(t, into)
	for _, list := range []string{"initContainers", "sidecars"} {
		var containers []any
		for _, name := range []string{"one", "two"}[:rapid.IntRange(0, 2).Draw(t, list)] {
			c := map[string]any{"name": list[:4] + name}
			if rapid.Bool().Draw(t, "own") {
				c["image"] = drawImage(t)
			}
			drawResources(t, c)
			containers = append(containers, c)
		}
		if containers != nil {
			into[list] = containers
		}
	}
}

// drawImage draws an image of parts that are similar to the approved ones.
func drawImage(t *rapid.T) string {
	host := rapid.SampledFrom([]string{"", "", "registry.company.com/", "registry.company.com:80/", "Registry/", "ghcr.io/", "localhost/", "localhost:5000/", "10.0.0.1:5000/", "docker.io/"}).Draw(t, "host")
	path := rapid.SampledFrom([]string{"", "acme/", "library/", "team/", "acme/team/"}).Draw(t, "path")
	name := rapid.SampledFrom([]string{"shop", "shops", "latest", "a.b"}).Draw(t, "name")
	tag := rapid.SampledFrom([]string{"", ":latest", ":v1", "@sha256:0", ":latest@sha256:0", ":v1@x:latest"}).Draw(t, "tag")
	return host + path + name + tag
}

func drawResources(t *rapid.T, into map[string]any) {
	switch rapid.IntRange(0, 5).Draw(t, "resources") {
	case 0:
		into["resources"] = map[string]any{}
	case 1:
		into["resources"] = map[string]any{"limits": map[string]any{"cpu": "1"}}
	case 2:
		into["resources"] = map[string]any{"limits": map[string]any{"memory": rapid.SampledFrom([]any{"1Gi", "0", "0Mi", int64(0), int64(5), "100m"}).Draw(t, "memory")}}
	default:
	}
}

// testUpdates: a claim that is older than a rule may be labelled and deleted, but its spec may only
// be changed if it meets the rule. Crossplane may make any change.
func testUpdates(t *testing.T, g *gate) {
	g.settings(t, nil)
	g.judge(t, "")
	old := claim(t, "WebApp", "{image: quay.io/app:v1}")
	old.SetFinalizers([]string{"storeplane.example.com/test"})
	g.create(t, old)
	g.approve(t)
	const want = "image is quay.io/app:v1" + fromWhere

	fresh := func() *unstructured.Unstructured {
		u := old.DeepCopy()
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(old), u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	edit := func(c client.Client, path ...string) string {
		u := fresh()
		if err := unstructured.SetNestedField(u.Object, int64(3), path...); err != nil {
			t.Fatal(err)
		}
		return refusal(c.Update(t.Context(), u, client.DryRunAll))
	}
	mark := func(change func(*unstructured.Unstructured)) string {
		u := fresh()
		change(u)
		return refusal(g.Update(t.Context(), u))
	}
	for _, step := range []struct {
		what, want string
		got        func() string
	}{
		{"a label", "", func() string {
			return mark(func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"team": "a"}) })
		}},
		{"a change of spec", want, func() string { return edit(g, "spec", "replicas") }},
		{"a change of spec by Crossplane", "", func() string { return edit(g.composing, "spec", "replicas") }},
		{"a claim of a claim", "", func() string { return refusal(g.composing.Create(t.Context(), other(old), client.DryRunAll)) }},
		{"the same claim by another user", want, func() string { return g.try(t.Context(), other(old)) }},
		{"deletion", "", func() string { return refusal(g.Delete(t.Context(), fresh())) }},
		{"a change of spec while it goes", want, func() string { return edit(g, "spec", "replicas") }},
		{"the last finalizer", "", func() string { return mark(func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }) }},
	} {
		if diff := cmp.Diff(step.want, step.got()); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", step.what, diff)
		}
	}
	if err := g.Get(t.Context(), client.ObjectKeyFromObject(old), old.DeepCopy()); !kerrors.IsNotFound(err) {
		t.Errorf("want the claim gone, got %v", err)
	}
}

// other returns a claim of another name with the same spec.
func other(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "spec": u.Object["spec"]}}
	out.SetNamespace(u.GetNamespace())
	out.SetName("other")
	return out
}

// testNonsense: invalid settings are reported as that.
func testNonsense(t *testing.T, g *gate) {
	const want = "cannot use EnvironmentConfig storeplane: data.policy.approvedRegistries must be a list of registries"
	for _, policy := range []any{"strict", map[string]any{"approvedRegistries": "quay.io"}, map[string]any{"approvedRegistries": []any{int64(5)}}} {
		g.settings(t, map[string]any{"policy": policy})
		g.judge(t, want)
		g.settings(t, nil)
		g.judge(t, "")
	}
	for _, policy := range []any{map[string]any{"allowedTolerations": "gpu"}, map[string]any{"allowedIngressHosts": []any{int64(5)}}} {
		g.settings(t, map[string]any{"policy": policy})
		g.judge(t, "cannot use EnvironmentConfig storeplane: what data.policy allows must be lists of texts")
		g.settings(t, nil)
		g.judge(t, "")
	}
}

// testEnvironment: in a namespace with an environment every claim must have that environment.
func testEnvironment(t *testing.T, g *gate) {
	g.settings(t, nil)
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	ns.SetName("prod")
	ns.SetLabels(map[string]string{"storeplane.example.com/environment": "production"})
	g.create(t, ns)
	const wants = ", and namespace prod is for production: set environment: production, or use another namespace"
	for name, tc := range map[string]struct {
		reason, kind, spec, namespace, want string
	}{
		"Development": {"Production's rules are not left by another word.", "WebApp", "{environment: development, image: 'a:1'}", "prod", "environment is development" + wants},
		"None":        {"Nor by none.", "WebApp", "{image: 'a:1'}", "prod", "environment is not set" + wants},
		"Database":    {"Databases too.", "DatabaseCluster", "{environment: staging, size: 1, version: '17'}", "prod", "environment is staging" + wants},
		"Shop":        {"And shops.", "EcommercePlatform", "{environment: staging, frontend: {image: 'f:1'}, backend: {image: 'b:1'}}", "prod", "environment is staging" + wants},
		"Production":  {"What it is for is let in.", "WebApp", "{environment: production, image: 'a:1'}", "prod", ""},
		"Elsewhere":   {"Other namespaces say nothing.", "WebApp", "{environment: development, image: 'a:1'}", "default", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := claim(t, tc.kind, tc.spec)
			u.SetNamespace(tc.namespace)
			planetest.Eventually(t, soon, "the API server judges it", func() error {
				if got := g.try(t.Context(), u); got != tc.want {
					return fmt.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
				}
				return nil
			})
		})
	}
}
