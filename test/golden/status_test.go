package golden

import (
	"testing"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/internal/xrd"
)

// TestStatusDeclares: the schema of every claim declares the status fields that the kernel
// writes. Crossplane could not apply the status otherwise, and would no longer compose the claim.
// Crossplane's own lastHandledReconcileAt must be declared too, because Crossplane does not add
// it to the schema.
func TestStatusDeclares(t *testing.T) {
	crds, err := xrd.CRDs(apis.Definitions)
	if err != nil || len(crds) == 0 {
		t.Fatalf("cannot find the definitions: %v", err)
	}
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			for _, field := range []string{"lastHandledReconcileAt", "lastCircuitProbeTime", "observedGeneration", "refusal"} {
				if _, ok := v.Schema.OpenAPIV3Schema.Properties["status"].Properties[field]; !ok {
					t.Errorf("%s: status.%s is not declared", crd.Name, field)
				}
			}
		}
	}
}
