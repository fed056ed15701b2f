package build

import (
	"testing"

	protectionv1beta1 "github.com/crossplane/crossplane/apis/v2/protection/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProtection(t *testing.T) {
	got := Protection(shop.Meta("protection", "webapp"), shop.Claim, "apps.example.com/v1", "WebApp")
	want := &protectionv1beta1.Usage{
		TypeMeta:   metav1.TypeMeta{APIVersion: "protection.crossplane.io/v1beta1", Kind: "Usage"},
		ObjectMeta: shop.Meta("protection", "webapp"),
		Spec: protectionv1beta1.UsageSpec{
			Of: protectionv1beta1.NamespacedResource{
				APIVersion: "apps.example.com/v1", Kind: "WebApp",
				// The claim is in the namespace of the Usage, so none is set.
				ResourceRef: &protectionv1beta1.NamespacedResourceRef{Name: "shop-backend"},
			},
			// Users who try to delete the claim read this.
			Reason: new("spec.deletionProtection is true, or defaults to it: set it to false first"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Protection(): -want, +got:\n%s", diff)
	}
}
