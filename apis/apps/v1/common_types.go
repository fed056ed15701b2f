package v1

import (
	corev1 "k8s.io/api/core/v1"
)

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

// Autoscaling keeps the number of pods between two bounds by their CPU use.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="autoscaling.minReplicas must not be more than autoscaling.maxReplicas"
type Autoscaling struct {
	// MinReplicas is the lower bound of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the upper bound of pods: at most 10 in production.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxReplicas int32 `json:"maxReplicas"`

	// TargetCPUUtilization is the CPU use, in percent of the requested CPU
	// averaged over all pods, that the autoscaler aims at.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	TargetCPUUtilization *int32 `json:"targetCPUUtilization,omitempty"`
}

// Probe says where the application answers when it is ready. Without it, a pod
// is ready when its port accepts a connection.
type Probe struct {
	// Path of an HTTP GET that answers 200 to 399 when the pod can take
	// requests, for example /readyz.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// Port of that request. Defaults to the application's port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// Migration is a Job that must complete before a new image is rolled out, for
// example a schema migration. It runs the application's image with the
// application's environment, once for each image.
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
}

// CronJob runs the application's image with the application's environment on
// a schedule. A run is skipped while the one before is still going.
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
}

// Schedule is a cron expression of five fields (minute, hour, day of month,
// month, day of week) or one of the macros @hourly, @daily, @midnight,
// @weekly, @monthly, @yearly and @annually.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|([0-9A-Za-z*/,?-]+ +){4}[0-9A-Za-z*/,?-]+)$`
type Schedule string

// Ingress exposes the application outside the cluster by a host name.
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

// Monitoring of what the claim makes.
type Monitoring struct {
	// Enabled turns monitoring on or off.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}

// Workload is what every tier that serves HTTP has in common.
type Workload struct {
	// Image to run.
	Image Image `json:"image"`

	// Command replaces the image's entrypoint.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command,omitempty"`

	// Args replace the image's arguments.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Args []string `json:"args,omitempty"`

	// Port on which the application serves HTTP. It is also given to the
	// application as the environment variable PORT.
	// +optional
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// Env are environment variables of the application, as in core/v1.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Env []corev1.EnvVar `json:"env,omitempty"`

	// EnvFrom takes environment variables from ConfigMaps and Secrets of the
	// claim's namespace, as in core/v1.
	// +optional
	// +kubebuilder:validation:MaxItems=33
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// Resources of each pod's container, as in core/v1. Defaults to what the
	// environment gives.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Autoscaling by CPU use. It takes the place of replicas.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// Probe that tells when a pod can take requests.
	// +optional
	Probe *Probe `json:"probe,omitempty"`
}

// ComponentStatus is the state of one part of a claim.
type ComponentStatus struct {
	// Name of the component.
	Name string `json:"name"`

	// Ready is true when all of the component is healthy.
	Ready bool `json:"ready"`

	// Message says in words what is waited for. Empty when ready.
	// +optional
	Message string `json:"message,omitempty"`
}

// CommonStatus is what every claim reports in the same way.
type CommonStatus struct {
	// Message says in one line what the claim waits for or what is wrong.
	// Empty when all is well.
	// +optional
	Message string `json:"message,omitempty"`

	// Components of the claim in the order in which they start.
	// +optional
	Components []ComponentStatus `json:"components,omitempty"`

	// ReadyGeneration is the newest generation of the claim at which all
	// components were healthy.
	// +optional
	ReadyGeneration int64 `json:"readyGeneration,omitempty"`
}

// ConfigState is the state of a claim's config in one word.
//
// +kubebuilder:validation:Enum=Pending;RollingOut;Running;RolledBack;Failed
type ConfigState string

// The states of a claim's config.
const (
	// ConfigPending has no bundle yet.
	ConfigPending ConfigState = "Pending"
	// ConfigRollingOut is on its way to the pods.
	ConfigRollingOut ConfigState = "RollingOut"
	// ConfigRunning is what all pods run.
	ConfigRunning ConfigState = "Running"
	// ConfigRolledBack did not work: the pods run what was there before.
	ConfigRolledBack ConfigState = "RolledBack"
	// ConfigFailed does not work, and there is nothing to go back to.
	ConfigFailed ConfigState = "Failed"
)

// ConfigStatus is the state of a claim's config.
type ConfigStatus struct {
	// Bundle is the ConfigMap that the pods run, or are rolled to.
	// +optional
	Bundle string `json:"bundle,omitempty"`

	// State in one word: Pending (it has not been taken up yet), RollingOut,
	// Running, RolledBack (it did not work, and the pods run what was there
	// before) or Failed (it does not work, and there was nothing before).
	// +optional
	State ConfigState `json:"state,omitempty"`

	// Message says what is waited for, or what went wrong. Empty when running.
	// +optional
	Message string `json:"message,omitempty"`
}
