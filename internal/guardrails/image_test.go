package guardrails

import (
	"os"
	"strings"
	"testing"
)

// TestSameExpressions: what the API server takes images apart with is what the
// functions do. TestAdmission proves that the rules around them say the same.
func TestSameExpressions(t *testing.T) {
	b, err := os.ReadFile("../../package/install/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, re := range []string{withHost.String(), versioned.String()} {
		if !strings.Contains(string(b), "matches('"+re+"')") {
			t.Errorf("package/install/admission.yaml does not match images with %s", re)
		}
	}
}
