package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Autoscaling keeps the number of pods between two bounds by what they use. Of
// several targets the one that asks for most pods counts. Without any target it
// is 80 percent of the requested CPU.
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
	// averaged over all pods, that the autoscaler aims at. Defaults to 80
	// where there is no other target.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	TargetCPUUtilization *int32 `json:"targetCPUUtilization,omitempty"`

	// TargetMemoryUtilization is the memory use, in percent of the requested
	// memory averaged over all pods, that the autoscaler aims at. It may be
	// above 100 where the limit is above the request.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	TargetMemoryUtilization *int32 `json:"targetMemoryUtilization,omitempty"`

	// Metrics that the cluster's custom or external metrics API serves, each
	// with the value that the autoscaler aims at.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Metrics []AutoscalingMetric `json:"metrics,omitempty"`
}

// AutoscalingMetric is a metric that a number of pods follows.
type AutoscalingMetric struct {
	// Type says whose metric it is: Pods, one of each pod, or External, one of
	// something outside the cluster, like the length of a queue.
	// +kubebuilder:validation:Enum=Pods;External
	Type string `json:"type"`

	// Name of the metric.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	Name string `json:"name"`

	// Selector narrows the metric down by its labels, as in meta/v1.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// AverageValue that each pod shall have of the metric, as a Kubernetes
	// quantity.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="averageValue must be a quantity above zero, like 100 or 500m"
	AverageValue string `json:"averageValue"`
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

	// Liveness restarts a pod that is stuck. Without it a pod is restarted
	// when its port has accepted no connection for a minute.
	// +optional
	Liveness *LivenessProbe `json:"liveness,omitempty"`

	// Startup bounds how long a start may take.
	// +optional
	Startup *StartupProbe `json:"startup,omitempty"`
}

// LivenessProbe asks the application whether it is stuck.
type LivenessProbe struct {
	// Path of an HTTP GET at the probe's port that answers 200 to 399 unless
	// only a restart helps, for example /livez. It must not depend on a
	// database or another service: all pods would restart when that is away.
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
}

// StartupProbe bounds how long a start may take.
type StartupProbe struct {
	// Seconds after which a pod that never became ready is restarted. Defaults
	// to 300.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	Seconds int32 `json:"seconds"`
}

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

	// ConcurrencyPolicy says what happens when a run is due while the one
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

	// SuccessfulJobsHistoryLimit is how many runs that succeeded are kept to
	// look at. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// FailedJobsHistoryLimit is how many runs that failed are kept to look at.
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

// Worker is pods that do work without taking requests, like those of a queue:
// the application's image with the application's environment, without a Service.
type Worker struct {
	// Name of the worker, unique in the application. The Deployment's own name
	// is <claim>-worker-<name>.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Command replaces the image's entrypoint.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command,omitempty"`

	// Args replace the image's arguments.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Args []string `json:"args,omitempty"`

	// Replicas is the number of pods: at most 10 in production. Defaults to 1.
	// Ignored while autoscaling is set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// Autoscaling takes the place of replicas.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// Resources of each pod's container, as in core/v1. Defaults to the
	// application's.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Probe is a command that ends with 0 unless only a restart helps. It is
	// run every 10 seconds, and a pod is restarted after a minute of failures.
	// Without it a pod is restarted when its process ends.
	// +optional
	Probe *WorkerProbe `json:"probe,omitempty"`
}

// WorkerProbe tells whether a worker is stuck.
type WorkerProbe struct {
	// Command to run in the worker's container. It is not run in a shell.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command"`
}

// InitContainer runs to its end before a pod's other containers start.
type InitContainer struct {
	// Name of the container, unique in the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['app', 'cron', 'http', 'metrics', 'migration', 'worker'])",message="app, cron, http, metrics, migration and worker are names of the application's own: choose another one"
	Name string `json:"name"`

	// Image to run. Defaults to the application's, and then the container has
	// the application's environment too.
	// +optional
	Image Image `json:"image,omitempty"`

	// Command replaces the image's entrypoint.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command,omitempty"`

	// Args replace the image's arguments.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Args []string `json:"args,omitempty"`

	// Env are environment variables of the container, as in core/v1.
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

	// Resources of the container, as in core/v1. Defaults to the environment's
	// for an init container, to 20m CPU and 32Mi to 128Mi memory for a
	// sidecar.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// Sidecar runs beside the application, from before it starts until after it
// ended.
type Sidecar struct {
	InitContainer `json:",inline"`

	// Port on which the sidecar listens at the pod's address: one that
	// listens at localhost alone is given none. The application starts once
	// it accepts a connection. Only the pod itself reaches it, unless it is
	// the port of metrics.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// Volume is a folder in all of the application's containers. It has exactly one
// source, as in core/v1.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.emptyDir), has(self.persistentVolumeClaim)].exists_one(s, s)",message="a volume needs exactly one of configMap, secret, emptyDir and persistentVolumeClaim"
type Volume struct {
	// Name of the volume, unique in the application.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'tmp'",message="tmp is the name of the volume at /tmp, which is there already: choose another one"
	Name string `json:"name"`

	// MountPath is where the folder is: an absolute path. /tmp is there
	// already.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(/[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`
	// +kubebuilder:validation:XValidation:rule="self != '/tmp'",message="mountPath may not be /tmp, which is there already and can be written to"
	MountPath string `json:"mountPath"`

	// ReadOnly keeps the application from writing to it. What is of a
	// ConfigMap or a Secret is always read-only. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// ConfigMap of the claim's namespace, each key a file.
	// +optional
	ConfigMap *corev1.ConfigMapVolumeSource `json:"configMap,omitempty"`

	// Secret of the claim's namespace, each key a file.
	// +optional
	Secret *corev1.SecretVolumeSource `json:"secret,omitempty"`

	// EmptyDir is scratch space that goes with the pod. With medium Memory it
	// counts as memory of the container that writes to it.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`

	// PersistentVolumeClaim of the claim's namespace. All pods mount the same
	// one: with more than one pod, or while pods are replaced, it must be
	// ReadWriteMany, or the pods on one node.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`
}

// Metrics says where the application serves metrics for Prometheus.
type Metrics struct {
	// Port of the metrics. Defaults to the application's port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// Path of the metrics.
	// +optional
	// +kubebuilder:default="/metrics"
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`
}

// Schedule is a cron expression of five fields (minute, hour, day of month,
// month, day of week) or one of the macros @hourly, @daily, @midnight,
// @weekly, @monthly, @yearly and @annually.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|([0-9A-Za-z*/,?-]+ +){4}[0-9A-Za-z*/,?-]+)$`
type Schedule string

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

// Monitoring of what the claim makes.
type Monitoring struct {
	// Enabled turns monitoring on or off.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}

// Workload is what every tier that serves HTTP has in common.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, self.volumes.exists_one(w, w.mountPath == v.mountPath))",message="volumes: each mountPath may be there only once"
// +kubebuilder:validation:XValidation:rule="!has(self.initContainers) || !has(self.sidecars) || self.initContainers.all(i, !self.sidecars.exists(s, s.name == i.name))",message="initContainers and sidecars may not share a name"
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

	// Autoscaling takes the place of replicas.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// Probe that tells when a pod can take requests.
	// +optional
	Probe *Probe `json:"probe,omitempty"`

	// TerminationGracePeriodSeconds is how many seconds the application has to
	// end after SIGTERM, which comes 5 seconds after the pod began to leave its
	// Service. Defaults to 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Volumes of the application's containers, in its migration, CronJobs and
	// workers too.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Volumes []Volume `json:"volumes,omitempty"`

	// InitContainers run one after the other before the application starts,
	// in its workers too.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	InitContainers []InitContainer `json:"initContainers,omitempty"`

	// Sidecars run beside the application, in its migration, CronJobs and
	// workers too, which end without waiting for them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Sidecars []Sidecar `json:"sidecars,omitempty"`

	// ImagePullSecrets name Secrets of the claim's namespace with which images
	// are pulled, as in core/v1.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Metrics for Prometheus. Without it none are read.
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`

	// NodeSelector names labels of the nodes on which pods may run.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods for taints of nodes, as in core/v1.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// PriorityClassName of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
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

	// Message says what went wrong. Empty while nothing did.
	// +optional
	Message string `json:"message,omitempty"`
}
