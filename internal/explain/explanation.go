package explain

import (
	"time"

	"github.com/storeplane/storeplane/internal/plan"
)

// APIVersion and Kind identify a Report in JSON.
const (
	APIVersion = "explain.storeplane.example.com/v1"
	Kind       = "ExplainReport"
)

// A Report explains some claims.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Claims are in the order in which they were named, or else sorted by kind, namespace and name.
	Claims []Explanation `json:"claims"`
}

// NewReport returns a report of explanations.
func NewReport(claims []Explanation) *Report {
	return &Report{APIVersion: APIVersion, Kind: Kind, Claims: claims}
}

// Ready reports whether all claims are ready.
func (r *Report) Ready() bool {
	for _, c := range r.Claims {
		if c.State != Ready {
			return false
		}
	}
	return true
}

// State is the state of a claim.
type State string

// The states of a claim.
const (
	// Ready means that all components of the claim are healthy, as of its newest generation.
	Ready State = "Ready"
	// NotReady means that a component is not, that the newest generation was not observed yet, or
	// that Crossplane cannot compose the claim.
	NotReady State = "NotReady"
	// Refused means that the claim's newest edit is refused, and that what runs is left as it is.
	Refused State = "Refused"
	// Paused means that the claim is not reconciled, by Crossplane's annotation.
	Paused State = "Paused"
	// Deleting means that the claim is being deleted.
	Deleting State = "Deleting"
)

// Explanation explains one claim.
type Explanation struct {
	Object plan.Object `json:"claim"`
	State  State       `json:"state"`

	// Since is when the claim entered that state, if that is known.
	Since *time.Time `json:"since,omitempty"`

	// Cause is the main reason why the claim is not ready.
	Cause *Cause `json:"cause,omitempty"`

	// Also are further causes, and problems that do not keep the claim from being ready.
	Also []Cause `json:"also,omitempty"`

	// Tree is the claim, the objects that it composes, and those that these own, each object before
	// its children.
	Tree []Node `json:"tree"`

	// Recent is what happened in the last hour, the oldest first.
	Recent []Happening `json:"recent,omitempty"`

	// Unknown lists in sentences what could not be read, and what is therefore unknown.
	Unknown []string `json:"unknown,omitempty"`
}

// Cause is what is wrong with an object.
type Cause struct {
	// Object is the object with which something is wrong.
	Object plan.Object `json:"object"`

	// Message is a sentence without its subject, which is Object, and without a full stop.
	Message string `json:"message"`

	// Since is when it began, if that is known.
	Since *time.Time `json:"since,omitempty"`

	Evidence []Evidence `json:"evidence,omitempty"`

	// Do lists what to do about it, in sentences without full stops.
	Do []string `json:"do,omitempty"`

	rank rank
}

// rank orders causes, the most important first.
type rank int

const (
	// lasting is the rank of what probably does not pass by itself.
	lasting rank = iota
	// reported is the rank of what a managed resource reports in its conditions.
	reported
	// passing is the rank of what may pass by itself.
	passing
	// stated is the rank of what a claim reports in its own conditions.
	stated
	// progressing is the rank of what is not done yet.
	progressing
)

// Source is the kind of thing that an Evidence comes from.
type Source string

// The sources of evidence.
const (
	FromCondition Source = "condition"
	FromContainer Source = "container"
	FromEvent     Source = "event"
	FromLog       Source = "log"
	FromNode      Source = "node"
	FromQuota     Source = "quota"
	FromVolume    Source = "volume"
	FromPackage   Source = "package"
)

// Evidence is an observation that supports a cause.
type Evidence struct {
	Source Source      `json:"source"`
	Object plan.Object `json:"object"`

	// At is when it was observed last, if that is known.
	At *time.Time `json:"at,omitempty"`

	Text string `json:"text"`
}

// Node is an object in a tree.
type Node struct {
	// Depth is the number of objects above this one: the claim has 0.
	Depth  int         `json:"depth"`
	Object plan.Object `json:"object"`

	// Ready reports whether the object is healthy.
	Ready bool `json:"ready"`

	// Message is a short description of the object's state.
	Message string `json:"message,omitempty"`
}

// Happening is an event, an edit of a spec, or the end of a container.
type Happening struct {
	At     time.Time   `json:"at"`
	Object plan.Object `json:"object"`

	// Count is how often it happened.
	Count int `json:"count"`

	Message string `json:"message"`
}
