package v1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of what an AppConfig makes and touches.
const (
	// AppConfigLabel is the name of the AppConfig that a ConfigMap or Secret
	// belongs to.
	AppConfigLabel = "config.example.com/appconfig"

	// BundleAnnotationPrefix with the name of an AppConfig is the annotation of
	// a pod template that names the bundle its pods run.
	BundleAnnotationPrefix = "bundle.config.example.com/"

	// HoldsAnnotation of the objects of the stable name is the bundle whose
	// content they hold.
	HoldsAnnotation = "config.example.com/bundle"

	// AllowAnnotation of a workload, or of a claim that makes workloads, names the
	// AppConfigs that may change it and report on its pods, separated by commas.
	AllowAnnotation = "config.example.com/appconfigs"
)

// Environment that an application runs in.
//
// +kubebuilder:validation:Enum=dev;staging;prod
type Environment string

// The environments.
const (
	Dev     Environment = "dev"
	Staging Environment = "staging"
	Prod    Environment = "prod"
)

// Templating of the values of config.
//
// +kubebuilder:validation:Enum=Go;None
type Templating string

// The ways of templating.
const (
	// TemplatingGo reads each value as a template of Go's text/template.
	TemplatingGo Templating = "Go"
	// TemplatingNone takes each value as it is.
	TemplatingNone Templating = "None"
)

// AppConfigParameters is the configuration of an application, and how it reaches
// its workloads.
//
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || !has(self.selector)",message="give either targets or a selector, not both"
type AppConfigParameters struct {
	// Application that the configuration is for. The names of what is made begin
	// with it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="application is immutable: make another AppConfig"
	Application string `json:"application"`

	// Environment that the application runs in: dev, staging or prod. It chooses
	// an overlay, and templates can read it.
	// +optional
	// +kubebuilder:default=dev
	Environment Environment `json:"environment,omitempty"`

	// Config by key. A key is an environment variable's name, or a file's; a
	// value is a template unless templating is None. At most 1 MiB in all.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Config map[string]string `json:"config,omitempty"`

	// Templating of the values: Go's text/template without loops, or None to take
	// them as they are. Templates can read .Environment, .Namespace, .Application and
	// .Values; a key that is not there is an error.
	// +optional
	// +kubebuilder:default=Go
	Templating Templating `json:"templating,omitempty"`

	// Values that templates can read as .Values.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Values map[string]string `json:"values,omitempty"`

	// Overlays by environment: what the one of this environment holds is laid
	// over config and values.
	// +optional
	// +kubebuilder:validation:MaxProperties=3
	// +kubebuilder:validation:XValidation:rule="self.all(e, e in ['dev', 'staging', 'prod'])",message="overlays are for the environments dev, staging and prod"
	Overlays map[string]Overlay `json:"overlays,omitempty"`

	// SecretRefs name Secrets of this namespace whose keys join the
	// configuration. They are rolled out together with it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	SecretRefs []SecretReference `json:"secretRefs,omitempty"`

	// Inject defines how the configuration gets into the containers.
	// +optional
	// +kubebuilder:default={}
	Inject *Inject `json:"inject,omitempty"`

	// Targets are the workloads that the configuration is for. Defaults to the
	// Deployments, StatefulSets, DaemonSets and CronJobs of this namespace with
	// the label app.kubernetes.io/name=<application>. Each allows it by its
	// annotation config.example.com/appconfigs: <name of the AppConfig>.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	Targets []Target `json:"targets,omitempty"`

	// Selector of the targets, instead of a list of them.
	// +optional
	Selector *Selector `json:"selector,omitempty"`

	// Rollout defines how a change reaches the targets.
	// +optional
	// +kubebuilder:default={}
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Overlay of one environment.
type Overlay struct {
	// Config that is laid over the AppConfig's.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Config map[string]string `json:"config,omitempty"`

	// Values that are laid over the AppConfig's.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Values map[string]string `json:"values,omitempty"`
}

// SecretReference names a Secret of this namespace.
type SecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Keys to take. Defaults to all keys of the Secret.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Keys []SecretKey `json:"keys,omitempty"`
}

// SecretKey is one key of a Secret.
type SecretKey struct {
	// Key in the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// As is the key in the configuration. Defaults to the same.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	As string `json:"as,omitempty"`
}

// Inject defines how the configuration gets into the containers.
type Inject struct {
	// Env makes each key that is a name of an environment variable one. An
	// environment variable that the container already has by that name stays.
	// +optional
	// +kubebuilder:default=true
	Env *bool `json:"env,omitempty"`

	// MountPath is a folder that holds each key as a file.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/[^:]+$`
	MountPath string `json:"mountPath,omitempty"`
}

// TargetKind is the kind of a workload.
//
// +kubebuilder:validation:Enum=Deployment;StatefulSet;DaemonSet;CronJob
type TargetKind string

// The kinds of workloads.
const (
	Deployment  TargetKind = "Deployment"
	StatefulSet TargetKind = "StatefulSet"
	DaemonSet   TargetKind = "DaemonSet"
	CronJob     TargetKind = "CronJob"
)

// Target is one workload of this namespace.
type Target struct {
	// Kind of the workload: Deployment, StatefulSet, DaemonSet or CronJob.
	Kind TargetKind `json:"kind"`

	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Containers that get the configuration. Defaults to the first one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Containers []string `json:"containers,omitempty"`
}

// Selector of workloads.
type Selector struct {
	// MatchLabels that a workload must have, all of them.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	MatchLabels map[string]string `json:"matchLabels"`
}

// Order in which targets are rolled out.
//
// +kubebuilder:validation:Enum=Parallel;Sequential
type Order string

// The orders.
const (
	// Parallel rolls all targets out at once.
	Parallel Order = "Parallel"
	// Sequential waits for each target before the next one.
	Sequential Order = "Sequential"
)

// RolloutBy is who changes the targets.
//
// +kubebuilder:validation:Enum=Provider;Owner
type RolloutBy string

// Who may change the targets.
const (
	// ByProvider lets the provider change them.
	ByProvider RolloutBy = "Provider"
	// ByOwner leaves them to the controller or the person that owns them.
	ByOwner RolloutBy = "Owner"
)

// Rollout defines how a change reaches the targets.
type Rollout struct {
	// ProgressDeadline is how long a target may make no progress before the
	// rollout has failed, from 10s to 1h.
	// +optional
	// +kubebuilder:default="5m0s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="rollout.progressDeadline must be from 10s to 1h"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`

	// AutoRollback puts the last good bundle back when a rollout has failed.
	// +optional
	// +kubebuilder:default=true
	AutoRollback *bool `json:"autoRollback,omitempty"`

	// Pause holds changes back: nothing is rolled out while it is set.
	// +optional
	Pause bool `json:"pause,omitempty"`

	// Order of the targets: Parallel, or Sequential to wait for each one before
	// the next: as they are listed, and by kind and name where a selector
	// chooses them.
	// +optional
	// +kubebuilder:default=Parallel
	Order Order `json:"order,omitempty"`

	// By is who changes the targets: Provider, or Owner, who reads
	// status.atProvider.bundle and makes the targets run it.
	// +optional
	// +kubebuilder:default=Provider
	By RolloutBy `json:"by,omitempty"`
}

// TargetState is the state of a target in one word.
//
// +kubebuilder:validation:Enum=Updated;Progressing;Waiting;Paused;Forbidden;Conflict;Missing;Failed
type TargetState string

// The states of a target.
const (
	// TargetUpdated runs what it shall run.
	TargetUpdated TargetState = "Updated"
	// TargetProgressing is on its way there.
	TargetProgressing TargetState = "Progressing"
	// TargetWaiting waits for its turn.
	TargetWaiting TargetState = "Waiting"
	// TargetPaused is a Deployment that is paused: it is not touched.
	TargetPaused TargetState = "Paused"
	// TargetForbidden may not be changed: its annotation does not name this
	// AppConfig, or the API server forbids it.
	TargetForbidden TargetState = "Forbidden"
	// TargetConflict has fields that another field manager owns.
	TargetConflict TargetState = "Conflict"
	// TargetMissing is not there.
	TargetMissing TargetState = "Missing"
	// TargetFailed did not become healthy.
	TargetFailed TargetState = "Failed"
)

// TargetStatus is the state of one target.
type TargetStatus struct {
	// Kind of the workload.
	Kind TargetKind `json:"kind"`

	// Name of the workload.
	Name string `json:"name"`

	// Bundle that its pod template holds.
	// +optional
	Bundle string `json:"bundle,omitempty"`

	// State in one word: Updated, Progressing, Waiting, Paused, Forbidden,
	// Conflict, Missing or Failed.
	State TargetState `json:"state"`

	// Since is when the state last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Reason of state Forbidden or Conflict in one word: NotAllowed, Forbidden,
	// FieldManagerConflict, Invalid or AlreadyExists.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message with the cause of the state, if there is one.
	// +optional
	Message string `json:"message,omitempty"`
}

// Debouncing is a change that waits until no more edits come.
type Debouncing struct {
	// Bundle that is to be rolled out.
	Bundle string `json:"bundle"`

	// FirstChangeTime is when the first change began to wait.
	FirstChangeTime metav1.Time `json:"firstChangeTime"`

	// LastChangeTime is when this bundle was first asked for.
	LastChangeTime metav1.Time `json:"lastChangeTime"`
}

// FailedRollout describes why a bundle is not good.
type FailedRollout struct {
	// Bundle that failed. It is not tried again until the content changes.
	Bundle string `json:"bundle"`

	// Time of the failure.
	Time metav1.Time `json:"time"`

	// Reason in one word: ProgressDeadlineExceeded, or PodFailing.
	Reason string `json:"reason"`

	// Message names the workload, the pod, the container, and what is wrong.
	Message string `json:"message"`

	// Log is the last lines of the failing container's log, without the values
	// of Secrets.
	// +optional
	Log string `json:"log,omitempty"`
}

// AppConfigObservation is what was seen of the configuration and its targets.
type AppConfigObservation struct {
	// Bundle is the name of the ConfigMap, and of the Secret where there is one,
	// that the targets shall run.
	// +optional
	Bundle string `json:"bundle,omitempty"`

	// LastGood is the newest bundle that all targets were healthy with.
	// +optional
	LastGood string `json:"lastGood,omitempty"`

	// Pending is the bundle that is being rolled out.
	// +optional
	Pending string `json:"pending,omitempty"`

	// PendingSince is when that began.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`

	// LastStarted is when the newest rollout began.
	// +optional
	LastStarted *metav1.Time `json:"lastStarted,omitempty"`

	// Debouncing is a change that waits until no more edits come.
	// +optional
	Debouncing *Debouncing `json:"debouncing,omitempty"`

	// Failed describes why the newest rollout failed. It is cleared when the content
	// changes.
	// +optional
	Failed *FailedRollout `json:"failed,omitempty"`

	// Targets and their states.
	// +optional
	Targets []TargetStatus `json:"targets,omitempty"`

	// ConfigMapName is the stable name: a ConfigMap, and a Secret where there
	// is one, that hold what the bundle holds.
	// +optional
	ConfigMapName string `json:"configMapName,omitempty"`

	// LastUpdated is when a rollout last ended well.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`
}

// AppConfigSpec is the desired state of an AppConfig.
type AppConfigSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is the configuration, and how it reaches the workloads.
	ForProvider AppConfigParameters `json:"forProvider"`
}

// AppConfigStatus is the observed state of an AppConfig.
type AppConfigStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen of the configuration and its targets.
	// +optional
	AtProvider AppConfigObservation `json:"atProvider,omitempty"`
}

// AppConfig is the configuration of an application. A change of it reaches the
// application's workloads as one rolling update, and is rolled back automatically if
// they do not become healthy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=ac,categories={crossplane,managed,storeplane}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.status.atProvider.bundle`
// +kubebuilder:printcolumn:name="Updated",type=date,JSONPath=`.status.atProvider.lastUpdated`
// +kubebuilder:printcolumn:name="Pending",type=string,priority=1,JSONPath=`.status.atProvider.pending`
// +kubebuilder:printcolumn:name="LastGood",type=string,priority=1,JSONPath=`.status.atProvider.lastGood`
// +kubebuilder:printcolumn:name="ConfigMap",type=string,priority=1,JSONPath=`.status.atProvider.configMapName`
// +kubebuilder:printcolumn:name="Synced",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name may have at most 63 characters, so that it fits into labels"
type AppConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec AppConfigSpec `json:"spec"`

	// Status is what was observed.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status AppConfigStatus `json:"status,omitempty"`
}

// AppConfigList is a list of AppConfigs.
//
// +kubebuilder:object:root=true
type AppConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AppConfig `json:"items"`
}
