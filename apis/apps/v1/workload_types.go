package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is what every tier that serves HTTP has in common.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, self.volumes.exists_one(w, w.mountPath == v.mountPath))",message="volumes: each mountPath may be there only once"
// +kubebuilder:validation:XValidation:rule="!has(self.initContainers) || !has(self.sidecars) || self.initContainers.all(i, !self.sidecars.exists(s, s.name == i.name))",message="initContainers and sidecars may not share a name"
type Workload struct {
	PodOptions `json:",inline"`

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

	// Probe that checks when a pod can take requests.
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

	// PodSecurity is the pod security standard that all pods of the application
	// meet: restricted, or baseline for an image that needs root or writes to its
	// own file system, which production and namespaces that enforce restricted
	// refuse. Defaults to restricted.
	// +optional
	PodSecurity PodSecurityStandard `json:"podSecurity,omitempty"`

	// RunAsUser is the number of the user that all containers run as, 1 or more.
	// Defaults to the image's user, which restricted needs to be named by number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`
}

// PodSecurityStandard is one of Kubernetes' pod security standards:
// https://kubernetes.io/docs/concepts/security/pod-security-standards/.
//
// +kubebuilder:validation:Enum=restricted;baseline
type PodSecurityStandard string

const (
	// PodSecurityRestricted runs without root, capabilities and a writable root
	// file system.
	PodSecurityRestricted PodSecurityStandard = "restricted"
	// PodSecurityBaseline runs as the image's user, with the capabilities of the
	// container runtime but NET_RAW, and a writable root file system.
	PodSecurityBaseline PodSecurityStandard = "baseline"
)

// Probe defines where the application answers when it is ready. Without it, a pod
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
	// Type is the source of the metric: Pods, one of each pod, or External, one of
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

// WorkerProbe checks whether a worker is stuck.
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

	// EmptyDir is scratch space that is deleted with the pod. With medium Memory it
	// counts as memory of the container that writes to it.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`

	// PersistentVolumeClaim of the claim's namespace. All pods mount the same
	// one: with more than one pod, or while pods are replaced, it must be
	// ReadWriteMany, or the pods on one node.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`
}

// Metrics defines where the application serves metrics for Prometheus.
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
