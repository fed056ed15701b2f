package build

import (
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetExternalName gives a managed resource the external name that its reconciler would set otherwise, by a
// write of its own that counts as an event of the claim.
func SetExternalName(o metav1.Object) { xpmeta.SetExternalName(o, o.GetName()) }
