package guardrails_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/test/plane/planetest"
)

// testEscrow: the namespace with the copies of keys cannot be deleted together with the rest of an
// installation.
func testEscrow(t *testing.T, g *gate) {
	escrow := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storeplane-escrow"}}
	remove := func() error { return g.Delete(t.Context(), escrow.DeepCopy(), client.DryRunAll) }
	allow := func(value string) {
		t.Helper()
		patch := []byte(`{"metadata":{"annotations":{"storeplane.example.com/allow-deletion":` + value + `}}}`)
		if err := g.Patch(t.Context(), escrow.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "namespace storeplane-escrow has the copies of the keys of encrypted backups, which cannot be read without them: to uninstall Storeplane use uninstall.yaml, which leaves it. Once no backup needs it, annotate it with storeplane.example.com/allow-deletion=true and delete it"
	for _, value := range []string{"null", `"false"`} {
		allow(value)
		planetest.Eventually(t, soon, "the deletion is refused", func() error {
			if err := remove(); err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("allow-deletion %s: want %q, got: %w", value, want, err)
			}
			return nil
		})
	}
	allow(`"true"`)
	if err := remove(); err != nil {
		t.Errorf("want the deletion of a namespace that may go to be admitted, got %v", err)
	}
	allow("null")
}
