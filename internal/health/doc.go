// Package health determines whether an object of the cluster is healthy, by its generation and its
// kind.
//
// Most kinds are evaluated by kstatus (github.com/fluxcd/cli-utils), as in Flux. This package adds
// what kstatus does not cover or evaluates differently: a Job is healthy once it has completed,
// since other components wait for that; a CronJob once it is stored; composite and managed
// resources by a Ready condition of their current generation; and an AppConfig has failed when it
// has given up. An old generation is never healthy.
//
// Each object is evaluated by itself, without its dependencies.
package health

// State is the state of an object.
type State int

// States, from worst to best.
const (
	// Failed means that the object will not become healthy without a change.
	Failed State = iota
	// Progressing means that the object is not healthy yet.
	Progressing
	// Healthy means that others may rely on it.
	Healthy
)

// Status is the health of an object.
type Status struct {
	State State
	// Message is the reason why the object is not healthy, in one line without counters of time.
	// Empty when healthy.
	Message string
}

// IsHealthy reports whether others may rely on the object.
func (s Status) IsHealthy() bool { return s.State == Healthy }

// Because replaces the general message of a workload that is not healthy with what keeps its pods
// from becoming ready, if that is known.
func (s Status) Because(waits string) Status {
	switch {
	case waits == "" || s.IsHealthy():
	case s.Message == podsUnready:
		s.Message = waits
	case s.Message == stuck+seePods:
		s.Message = stuck + waits
	}
	return s
}

// Messages of workloads whose pods are not ready.
const (
	podsUnready = "Not all pods are ready"
	stuck       = "Rollout exceeded its progress deadline: "
	seePods     = "see its pods"
)

func healthy() Status               { return Status{State: Healthy} }
func progressing(msg string) Status { return Status{State: Progressing, Message: msg} }
func failed(msg string) Status      { return Status{State: Failed, Message: msg} }
