package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestReferences: a claim can be restored with the references to all objects of which it is
// composed, and with no others. The kinds are derived from the golden files, and from the claims
// of the functions' tests, which use more fields than the examples do.
func TestReferences(t *testing.T) {
	// These are composed only if the cluster has the kind, or by a claim that is not among the
	// examples.
	const monitor = "monitoring.coreos.com/v1 PodMonitor"
	want := map[string][]string{
		appsv1.WebAppKind:                {monitor},
		appsv1.DatabaseClusterKind:       {monitor, "backup.example.com/v1 Backup"},
		platformv1.EcommercePlatformKind: {monitor, "gateway.networking.k8s.io/v1 HTTPRoute"},
	}
	for _, u := range goldenObjects(t) {
		if owner := metav1.GetControllerOf(u); owner != nil {
			want[owner.Kind] = append(want[owner.Kind], u.GetAPIVersion()+" "+u.GetKind())
		}
	}
	for _, claim := range []string{
		functionstest.FullApp, functionstest.BigApp, functionstest.MigratedApp,
		functionstest.DatabaseCluster(functionstest.Production), functionstest.DatabaseCluster(functionstest.BigCluster),
		functionstest.EcommercePlatform(functionstest.BigShop),
	} {
		for _, o := range functionstest.Expand(t, claim, "") {
			kind, _, _ := strings.Cut(o.Claim, " ")
			want[kind] = append(want[kind], functionstest.Get(o.Object, "apiVersion").GetStringValue()+" "+o.Kind())
		}
	}
	for kind, of := range want {
		want[kind] = slices.Compact(slices.Sorted(slices.Values(of)))
	}
	if diff := cmp.Diff(want, policyKinds(t)); diff != "" {
		t.Errorf("policy storeplane-references of package/install/admission.yaml: -what is composed, +what is allowed:\n%s", diff)
	}
}

// policyKinds returns the kinds to which the policy lets a claim refer, by the claim's kind. The
// policy's CEL map is valid YAML too.
func policyKinds(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("../../package/install/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for doc := range bytes.SplitSeq(b, []byte("\n---\n")) {
		p := &admissionv1.ValidatingAdmissionPolicy{}
		if err := yaml.Unmarshal(doc, p); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(p.Spec.Variables, func(v admissionv1.Variable) bool { return v.Name == "composed" })
		if p.Name != "storeplane-references" || i < 0 {
			continue
		}
		out := map[string][]string{}
		if err := yaml.Unmarshal([]byte(p.Spec.Variables[i].Expression), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	t.Fatal("cannot find policy storeplane-references")
	return nil
}
