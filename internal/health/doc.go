// Package health judges whether an object of the cluster is healthy, by its
// generation and its kind.
//
// Most kinds are kstatus's (github.com/fluxcd/cli-utils), which Flux and Argo
// users know. This package adds what kstatus does not know or sees otherwise:
// a Job is healthy once it completed, since here it is a gate; a CronJob once
// it is stored; composite and managed resources by a Ready condition of their
// current generation, an AppConfig failed when it has given up. An old generation
// is never healthy.
//
// The package looks at one object only. It knows no dependencies.
package health

// State of an object.
type State int

// The states, from worst to best.
const (
	// Failed means that it will not get healthy without a change.
	Failed State = iota
	// Progressing means that it is on its way.
	Progressing
	// Healthy means that others may rely on it.
	Healthy
)

// Status is a judgement.
type Status struct {
	State State
	// Message says in words why the object is not healthy, in one line
	// without counters of time. Empty when healthy.
	Message string
}

// IsHealthy is true when others may rely on the object.
func (s Status) IsHealthy() bool { return s.State == Healthy }

// Because says of a workload that is not healthy what keeps its pods from becoming ready, where
// that is known.
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

// Words of workloads whose pods are not ready.
const (
	podsUnready = "Not all pods are ready"
	stuck       = "Rollout exceeded its progress deadline: "
	seePods     = "see its pods"
)

func healthy() Status               { return Status{State: Healthy} }
func progressing(msg string) Status { return Status{State: Progressing, Message: msg} }
func failed(msg string) Status      { return Status{State: Failed, Message: msg} }
