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

	// Wanted is the bundle of the content that is asked for, or "" with a
	// Problem.
	Wanted  string
	Problem *appconfig.Problem

	// Frozen says that the management policies let nothing be changed.
	Frozen bool

	// Whole are the bundles that exist with all they consist of.
	Whole map[string]bool

	// Taken is an object of the stable name that is not ours, in words, or "".
	Taken string

	// Holds is the bundle that the objects of the stable name hold, or "".
	Holds string

	// Targets in the order of the rollout.
	Targets []Target

	// Others are the AppConfigs of the namespace that roll something out.
	Others []Other

	// Budget is how many workloads of the namespace may progress at a time.
	Budget int
}

// Key of a workload in its namespace.
type Key struct {
	Kind configv1.TargetKind
	Name string
}

func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// Target as it is.
type Target struct {
	Key

	// Missing says that it is not there, or on its way out.
	Missing bool

	// Closed is "" where it allows the AppConfig to change it, else the value that
	// its annotation would have to have.
	Closed string

	// Paused Deployments are not touched.
	Paused bool

	// Bundle that its pod template holds, or "".
	Bundle string

	// Annotated says that the template's annotation tells so.
	Annotated bool

	// Reader says that the template refers to the stable name.
	Reader bool

	// Current says that the template has all it needs to run its Bundle.
	Current bool

	// Health of the workload.
	Health health.Status

	// Refused is why it cannot be changed now, or nil.
	Refused *Refusal

	// Pods of the workload, as far as they were looked at.
	Pods Pods
}

// gated kinds prove a bundle: a CronJob's pods run when they are due.
func (t *Target) gated() bool { return t.Kind != configv1.CronJob }

// Refusal of a change.
type Refusal struct {
	State   configv1.TargetState
	Reason  string
	Message string
}

// Pods of a target, and what they tell of its bundle.
type Pods struct {
	// Fault of a pod that runs the target's bundle, or nil.
	Fault *Fault

	// Trouble of such a pod in words, though it may pass by itself.
	Trouble string

	// LastReady is when a pod last became ready.
	LastReady time.Time

	// Unproven says that a pod without a readiness probe has not run for long.
	Unproven bool

	// Blocking are the pods of a StatefulSet that never became ready and are
	// in the way of the template's.
	Blocking []Pod
}

// Fault of a pod.
type Fault struct {
	Pod, Container string

	// Message in words that follow the pod's name.
	Message string

	// Log is the last lines of the container, without secrets.
	Log string

	// Late says that it tells nothing before the deadline: it may pass.
	Late bool
}

// Pod to be deleted, unless it is another one by now.
type Pod struct {
	Name, UID string
}

// Other AppConfig of the namespace.
type Other struct {
	Name string

	// Since is when its rollout began; zero while it has none.
	Since time.Time

	// Progressing workloads, and those that Wait for it.
	Progressing, Waiting []Key
}

func (s *State) params() *configv1.AppConfigParameters { return &s.AppConfig.Spec.ForProvider }

func (s *State) paused() bool { return s.params().Rollout != nil && s.params().Rollout.Pause }

// recorded state of a target, or nil.
func (s *State) recorded(k Key) *configv1.TargetStatus {
	for i := range s.AppConfig.Status.AtProvider.Targets {
		if t := &s.AppConfig.Status.AtProvider.Targets[i]; t.Kind == k.Kind && t.Name == k.Name {
			return t
		}
	}
	return nil
}
