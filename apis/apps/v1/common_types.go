package v1

// Environment names a set of defaults: sizes, replication, limits, protection.
// Every default can be overridden by its own field.
//
// +kubebuilder:validation:Enum=development;staging;production
type Environment string

// The environments, from the most frugal to the safest.
const (
	Development Environment = "development"
	Staging     Environment = "staging"
	Production  Environment = "production"
)

// Image is a container image reference, as in core/v1.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9._:/@-]*[a-zA-Z0-9])?$`
type Image string

// Monitoring of what the claim makes.
type Monitoring struct {
	// Enabled turns monitoring on or off.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}
