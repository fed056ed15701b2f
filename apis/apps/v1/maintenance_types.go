package v1

// Weekday by its English name.
//
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type Weekday string

// Maintenance is a window of time, each week or each day, in which a new release of Storeplane,
// or new settings of the installation, may replace pods. Without one they may at any time. An
// edit of the claim never waits.
type Maintenance struct {
	// Days of the week on which the window opens. Defaults to every day.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days,omitempty"`

	// Start of the window in hours and minutes, for example 02:30.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`

	// Hours for which the window is open. Defaults to 4.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=24
	Hours *int32 `json:"hours,omitempty"`

	// TimeZone of the days and the start by its IANA name, for example Europe/Paris. Defaults to
	// UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+/-]+$`
	TimeZone string `json:"timeZone,omitempty"`
}
