package guardrails

import (
	"os"
	"strings"
	"testing"
)

// TestSameExpressions: the API server parses images with the same expressions as the functions.
// TestAdmission checks that the rules around them agree.
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
