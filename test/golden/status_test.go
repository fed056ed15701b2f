package golden

import (
	"io/fs"
	"testing"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/internal/xrd"
)

// TestStatusDeclares: the schema of every claim declares the status fields that the kernel
// writes. Crossplane could not apply the status otherwise, and would no longer compose the claim.
// Crossplane's own lastHandledReconcileAt must be declared too, because Crossplane does not add
// it to the schema.
func TestStatusDeclares(t *testing.T) {
	files, err := fs.Glob(apis.Definitions, "*/definition.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find the definitions: %v", err)
	}
	for _, file := range files {
		b, err := fs.ReadFile(apis.Definitions, file)
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
		for _, v := range crd.Spec.Versions {
			for _, field := range []string{"lastHandledReconcileAt", "lastCircuitProbeTime", "observedGeneration", "refusal"} {
				if _, ok := v.Schema.OpenAPIV3Schema.Properties["status"].Properties[field]; !ok {
					t.Errorf("%s: status.%s is not declared", crd.Name, field)
				}
			}
		}
	}
}
