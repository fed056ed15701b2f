package v1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RestoreGrantSpec names who may restore.
type RestoreGrantSpec struct {
	// To are the namespaces whose Restores, and whose DatabaseClusters by
	// restoreFrom, may read the backups of this namespace with the platform's
	// credentials.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	To []string `json:"to"`
}

// RestoreGrant lets other namespaces restore what its own namespace has backed up
// with the platform's credentials, as a ReferenceGrant of the Gateway API lets them
// refer to what is there: https://gateway-api.sigs.k8s.io/api-types/referencegrant/.
// A restore that has begun continues when its grant is deleted. Grants of a namespace
// that is lost are in the ClusterProviderConfig and the installation's settings.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={storeplane}
// +kubebuilder:printcolumn:name="To",type=string,JSONPath=`.spec.to`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RestoreGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is who may restore.
	Spec RestoreGrantSpec `json:"spec"`
}

// Allows reports whether a namespace may read the backups of the grant's own.
func (g *RestoreGrant) Allows(namespace string) bool {
	return g.DeletionTimestamp == nil && slices.Contains(g.Spec.To, namespace)
}

// RestoreGrantList is a list of RestoreGrants.
//
// +kubebuilder:object:root=true
type RestoreGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RestoreGrant `json:"items"`
}
