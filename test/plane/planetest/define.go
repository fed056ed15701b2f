package planetest

import (
	"io/fs"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/internal/xrd"
	"github.com/storeplane/storeplane/test/plane"
)

// Define creates the definitions of the claims' kinds, as Crossplane creates them, and others,
// and waits until all are served.
func Define(t *testing.T, c client.Client, others ...*extv1.CustomResourceDefinition) {
	t.Helper()
	all := append(definitions(t), others...)
	for _, crd := range all {
		if err := plane.Create(t.Context(), c, crd); err != nil {
			t.Fatal(err)
		}
	}
	for _, crd := range all {
		if err := plane.AwaitServed(t.Context(), c, crd); err != nil {
			t.Fatal(err)
		}
	}
}

// definitions returns the CustomResourceDefinitions of the claims' kinds, as Crossplane creates
// them.
func definitions(t *testing.T) []*extv1.CustomResourceDefinition {
	t.Helper()
	files, err := fs.Glob(apis.Definitions, "*/definition.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find the definitions: %v", err)
	}
	out := make([]*extv1.CustomResourceDefinition, 0, len(files))
	for _, f := range files {
		b, err := fs.ReadFile(apis.Definitions, f)
		if err != nil {
			t.Fatal(err)
		}
		d, err := xrd.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		crd, err := xrd.CRD(d)
		if err != nil {
			t.Fatal(err)
		}
		// The plane has no CompositeResourceDefinition that could own it.
		crd.OwnerReferences = nil
		out = append(out, crd)
	}
	return out
}
