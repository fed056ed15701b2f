package build

import (
	protectionv1beta1 "github.com/crossplane/crossplane/apis/v2/protection/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Protection returns a Usage that refuses the deletion of the claim as long as the Usage exists.
// Claims of different kinds need Usages of different names
// (https://docs.crossplane.io/latest/managed-resources/usages/).
func Protection(meta metav1.ObjectMeta, claim, apiVersion, kind string) *protectionv1beta1.Usage {
	return &protectionv1beta1.Usage{
		TypeMeta:   metav1.TypeMeta{APIVersion: protectionv1beta1.SchemeGroupVersion.String(), Kind: protectionv1beta1.UsageKind},
		ObjectMeta: meta,
		Spec: protectionv1beta1.UsageSpec{
			Of: protectionv1beta1.NamespacedResource{
				APIVersion:  apiVersion,
				Kind:        kind,
				ResourceRef: &protectionv1beta1.NamespacedResourceRef{Name: claim},
			},
			Reason: new("spec.deletionProtection is true, or defaults to it: set it to false first"),
		},
	}
}
