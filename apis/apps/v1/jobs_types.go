package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Migration is a Job that must complete before a new image is rolled out, for
// example a schema migration. It runs the application's image with the
// application's environment, once for each image and each change of this field.
//
// +kubebuilder:validation:XValidation:rule="(has(self.command) && self.command.size() > 0) || (has(self.args) && self.args.size() > 0)",message="migration needs a command or args"
type Migration struct {
	// Command replaces the image's entrypoint.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command,omitempty"`

	// Args replace the image's arguments.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Args []string `json:"args,omitempty"`

	// BackoffLimit is how often a run that failed is tried again before the
	// migration has failed. Defaults to 4.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// ActiveDeadlineSeconds is after how many seconds, all tries together, the
	// migration has failed. Defaults to 3600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// CronJob runs the application's image with the application's environment on
// a schedule.
type CronJob struct {
	// Name of the job, unique in the application. The CronJob's own name is
	// <claim>-cron-<name>, which may have 52 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Schedule in cron format, five fields or a macro like @daily.
	Schedule Schedule `json:"schedule"`

	// TimeZone of the schedule by its IANA name, for example Europe/Paris.
	// Defaults to the time zone of the cluster's controller manager, mostly
	// UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+/-]+$`
	TimeZone string `json:"timeZone,omitempty"`

	// Command replaces the image's entrypoint.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command,omitempty"`

	// Args replace the image's arguments.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Args []string `json:"args,omitempty"`

	// Resources of each run, as in core/v1. Defaults to the application's.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// ConcurrencyPolicy defines what happens when a run is due while the one
	// before is still going: Forbid skips it, Allow starts it too, Replace
	// ends the one before. Defaults to Forbid.
	// +optional
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	ConcurrencyPolicy batchv1.ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// Suspend starts no more runs as long as it is true. Defaults to false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// StartingDeadlineSeconds is how many seconds late a run may start before
	// it counts as missed. Defaults to 300.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// SuccessfulJobsHistoryLimit is how many runs that succeeded are kept.
	// Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// FailedJobsHistoryLimit is how many runs that failed are kept.
	// Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// BackoffLimit is how often a pod that failed is tried again before the
	// run has failed. Defaults to 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// ActiveDeadlineSeconds is after how many seconds, all tries together, a
	// run has failed. Without it a run may take as long as it likes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// Schedule is a cron expression of five fields (minute, hour, day of month,
// month, day of week) or one of the macros @hourly, @daily, @midnight,
// @weekly, @monthly, @yearly and @annually.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|([0-9A-Za-z*/,?-]+ +){4}[0-9A-Za-z*/,?-]+)$`
type Schedule string
