package appconfig

import (
	"time"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/health"
)

// State is all that a decision depends on.
type State struct {
	AppConfig *configv1.AppConfig
	Now       time.Time

	// Wanted is the bundle of the content that the AppConfig declares, or "" if there is a Problem.
	Wanted  string
	Problem *appconfig.Problem

	// Frozen is true if the management policies allow no changes.
	Frozen bool

	// Whole are the bundles of which all objects exist.
	Whole map[string]bool

	// Taken names an object with the stable name that does not belong to the AppConfig, or is "".
	Taken string

	// Holds is the bundle that the objects of the stable name hold, or "".
	Holds string

	// Targets are in the order of the rollout.
	Targets []Target

	// Others are the other AppConfigs of the namespace that roll something out.
	Others []Other

	// Budget is how many workloads of the namespace may progress at a time.
	Budget int
}

// Key is the kind and name of a workload in its namespace.
type Key struct {
	Kind configv1.TargetKind
	Name string
}

func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// Target is a workload of the AppConfig as it was observed.
type Target struct {
	Key

	// Missing is true if it does not exist or is being deleted. A Deployment that a claim creates
	// paused, since its pods have to wait, does not exist for its AppConfig until then.
	Missing bool

	// Closed is "" if it allows the AppConfig to change it, and otherwise the value that its
	// annotation would have to have.
	Closed string

	// Paused is true for a Deployment that is paused. It is not changed.
	Paused bool

	// Bundle is the one that its pod template runs, or "".
	Bundle string

	// Annotated is true if an annotation of the template names the Bundle.
	Annotated bool

	// Reader is true if the template refers to the stable name.
	Reader bool

	// Current is true if the template has all that it needs to run its Bundle.
	Current bool

	// Health is that of the workload.
	Health health.Status

	// Refused is why it cannot be changed now, or nil.
	Refused *Refusal

	// Pods are those of the workload, as far as they were read.
	Pods Pods
}

// gated reports whether the target proves a bundle: pods of a CronJob only run when they are due.
func (t *Target) gated() bool { return t.Kind != configv1.CronJob }

// Refusal is why a change of a target was refused.
type Refusal struct {
	State   configv1.TargetState
	Reason  string
	Message string
}

// Pods is what the pods of a target show about its bundle.
type Pods struct {
	// Fault is that of a pod that runs the target's bundle, or nil.
	Fault *Fault

	// NotReady is why such a pod is not ready, even if that may pass by itself, or "".
	NotReady string

	// LastReady is when a pod last became ready.
	LastReady time.Time

	// Unproven is true if a pod without a readiness probe has not been ready for long.
	Unproven bool

	// Blocking are the pods of a StatefulSet that never became ready and are in the way of those of
	// its template.
	Blocking []Pod
}

// Fault is the failure of a pod.
type Fault struct {
	Pod, Container string

	// Message follows the pod's name.
	Message string

	// Log is the last lines of the container, without secrets.
	Log string

	// Late is true if the failure may pass by itself, and only counts at the deadline.
	Late bool
}

// Pod is a pod to be deleted. Another pod with its name stays.
type Pod struct {
	Name, UID string
}

// Other is another AppConfig of the namespace.
type Other struct {
	Name string

	// Since is when its rollout began, or zero if there is none.
	Since time.Time

	// Progressing are the workloads that it is changing, and Waiting those that it is about to
	// change.
	Progressing, Waiting []Key
}

func (s *State) params() *configv1.AppConfigParameters { return &s.AppConfig.Spec.ForProvider }

func (s *State) paused() bool { return s.params().Rollout != nil && s.params().Rollout.Pause }

// recorded returns the recorded state of a target, or nil.
func (s *State) recorded(k Key) *configv1.TargetStatus {
	for i := range s.AppConfig.Status.AtProvider.Targets {
		if t := &s.AppConfig.Status.AtProvider.Targets[i]; t.Kind == k.Kind && t.Name == k.Name {
			return t
		}
	}
	return nil
}
