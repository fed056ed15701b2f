package planetest

import (
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
	crds, err := xrd.CRDs(apis.Definitions)
	if err != nil || len(crds) == 0 {
		t.Fatalf("cannot find the definitions: %v", err)
	}
	for _, crd := range crds {
		// The plane has no CompositeResourceDefinition that could own it.
		crd.OwnerReferences = nil
	}
	return crds
}
