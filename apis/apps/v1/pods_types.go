package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodOptions are fields of Kubernetes' own for all pods of a component.
type PodOptions struct {
	// NodeSelector names labels of the nodes on which pods may run.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods for taints of nodes, as in core/v1.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity of the pods, as in core/v1. Each of nodeAffinity, podAffinity and
	// podAntiAffinity takes the place of what Storeplane sets by default.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// PriorityClassName of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// PodLabels are labels of the pods beside Storeplane's own.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// PodAnnotations are annotations of the pods beside Storeplane's own.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
}
