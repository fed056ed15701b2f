package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ComponentStatus is the state of one part of a claim.
type ComponentStatus struct {
	// Name of the component.
	Name string `json:"name"`

	// Ready is true when all of the component is healthy.
	Ready bool `json:"ready"`

	// Message describes what the component waits for. Empty when ready.
	// +optional
	Message string `json:"message,omitempty"`
}

// CommonStatus is what every claim reports in the same way.
type CommonStatus struct {
	// Message describes in one line what the claim waits for or what is wrong.
	// Empty when all is well.
	// +optional
	Message string `json:"message,omitempty"`

	// PodFailure names the first pod that does not become ready, and why, if that does not
	// pass by itself: an image that cannot be pulled, a container that fails, no node. A
	// cause that may pass, like a probe or a volume, counts after half a minute.
	// +optional
	PodFailure string `json:"podFailure,omitempty"`

	// Components of the claim in the order in which they start.
	// +optional
	Components []ComponentStatus `json:"components,omitempty"`

	// ObservedGeneration is the newest generation of the claim that became Ready, or Stalled, and 0
	// before any did. Where it is less than metadata.generation the claim's last change is under
	// way, or not observed yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ReadyGeneration is the newest generation of the claim at which all
	// components were healthy. Where it is less than metadata.generation the
	// claim's last change is not done, whatever condition Ready reports of it for a
	// moment.
	// +optional
	ReadyGeneration int64 `json:"readyGeneration,omitempty"`

	// AcceptedSettings is the data of EnvironmentConfig storeplane that the
	// claim is composed with, as JSON. The claim keeps it while the
	// EnvironmentConfig cannot be used or does not exist. Empty where the
	// installation has none.
	// +optional
	AcceptedSettings string `json:"acceptedSettings,omitempty"`

	// Release of Storeplane whose pods the claim has: its version, and a digest of its images and
	// of the settings that pods depend on.
	// +optional
	Release string `json:"release,omitempty"`

	// PendingRelease is the newest release, where its changes of the claim's pods wait for a
	// maintenance window. Empty where nothing waits.
	// +optional
	PendingRelease string `json:"pendingRelease,omitempty"`

	// Inputs are digests of what users have asked for: of the claim's spec, of what pods carry of
	// Secrets and configuration, and of who has written the spec when. Where they are the same and
	// pods are to change, it is Storeplane that changes them.
	// +optional
	Inputs string `json:"inputs,omitempty"`

	// Refusal is of the object that the API server refused last, by a quota or a policy for example.
	// Empty where it refuses none, and where it refuses one as invalid, which the claim's events
	// explain.
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`

	// LastHandledReconcileAt is the value of annotation crossplane.io/reconcile-requested-at that
	// Crossplane has answered last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// LastCircuitProbeTime is when the claim was last written for one reason alone: that
	// Crossplane's circuit breaker, open since the claim had too many events, closes with the
	// next one after its cooldown, and a claim at rest has none. Empty where the breaker never
	// stayed open that long.
	// +optional
	LastCircuitProbeTime *metav1.Time `json:"lastCircuitProbeTime,omitempty"`
}

// Refusal of an object by the API server. Nothing of the claim is changed until the object is tried
// again: after a sixth of the time for which it has been refused, but after five seconds at least,
// thirty if it does not exist yet, and a minute at most; and at once after an edit of the claim.
type Refusal struct {
	// Component of the claim that the object is of.
	Component string `json:"component"`

	// Message of the API server.
	Message string `json:"message"`

	// SpecDigest is a digest of the claim's spec with which the object is refused, without what
	// Crossplane writes there: the references to composed objects change with each attempt to
	// create one, and the claim's generation with them.
	SpecDigest string `json:"specDigest"`

	// FirstTime is when the object was refused first with this spec.
	FirstTime metav1.Time `json:"firstTime"`

	// LastTime is when it was tried last.
	LastTime metav1.Time `json:"lastTime"`
}

// Phases that claims of every kind have.
const (
	// PhasePending means that nothing of the claim exists yet.
	PhasePending = "Pending"
	// PhaseDeploying means that the claim, or a change of it, is being applied.
	PhaseDeploying = "Deploying"
	// PhaseRunning means that every declared component is healthy.
	PhaseRunning = "Running"
	// PhaseDegraded means that a component is no longer healthy although the claim has not changed
	// since all components were.
	PhaseDegraded = "Degraded"
	// PhaseFailed means that a component will not become healthy without a change, or that the
	// claim cannot be composed.
	PhaseFailed = "Failed"
)

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

	// Message describes what failed. Empty while nothing did.
	// +optional
	Message string `json:"message,omitempty"`
}
