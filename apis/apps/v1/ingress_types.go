package v1

// AnnotationClusterIssuer is what names a cert-manager ClusterIssuer on an Ingress.
const AnnotationClusterIssuer = "cert-manager.io/cluster-issuer"

// Ingress exposes the application outside the cluster by a host name: with an
// Ingress, or with an HTTPRoute of a Gateway.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !has(self.className)",message="ingress.className is of an Ingress: leave it out with ingress.gateway"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !has(self.tls)",message="ingress.tls is of an Ingress: with ingress.gateway the Gateway's listener has the certificate"
type Ingress struct {
	// Host name under which the application is reached.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Host string `json:"host"`

	// ClassName of the Ingress. Defaults to the installation's setting, else
	// to the cluster's default class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClassName string `json:"className,omitempty"`

	// TLS terminates HTTPS at the ingress.
	// +optional
	TLS *IngressTLS `json:"tls,omitempty"`

	// Annotations of the Ingress or HTTPRoute, for its controller.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`

	// Gateway that takes the requests, instead of an Ingress. The cluster
	// needs the Gateway API.
	// +optional
	Gateway *Gateway `json:"gateway,omitempty"`
}

// Gateway names a Gateway of the Gateway API, or one of its listeners.
type Gateway struct {
	// Name of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Namespace of the Gateway. Defaults to the claim's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// SectionName of the listener. Defaults to all listeners that take the
	// host. One whose name begins with https makes the claim's url one of
	// HTTPS.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	SectionName string `json:"sectionName,omitempty"`
}

// IngressTLS names the certificate, or who issues it.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretName) || has(self.issuer)",message="ingress.tls needs a secretName or an issuer"
type IngressTLS struct {
	// SecretName of a kubernetes.io/tls Secret in the claim's namespace. With
	// an issuer it is where the issued certificate goes, by default
	// <claim>-tls.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// Issuer is the name of a cert-manager ClusterIssuer that issues and
	// renews the certificate.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Issuer string `json:"issuer,omitempty"`
}
