package explain

import (
	"time"

	"github.com/storeplane/storeplane/internal/plan"
)

// APIVersion and kind of a Report as JSON.
const (
	APIVersion = "explain.storeplane.example.com/v1"
	Kind       = "ExplainReport"
)

// A Report explains some claims.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Claims in the order of their kinds, namespaces and names.
	Claims []Explanation `json:"claims"`
}

// NewReport of explanations.
func NewReport(claims []Explanation) *Report {
	return &Report{APIVersion: APIVersion, Kind: Kind, Claims: claims}
}

// Ready tells whether all claims are.
func (r *Report) Ready() bool {
	for _, c := range r.Claims {
		if c.State != Ready {
			return false
		}
	}
	return true
}

// State of a claim.
type State string

// The states.
const (
	// Ready says that all of the claim is healthy, as its newest generation asks for it.
	Ready State = "Ready"
	// NotReady says that it is not.
	NotReady State = "NotReady"
	// Refused says that the claim's newest edit is refused, and what runs is left alone.
	Refused State = "Refused"
	// Paused says that nothing is done about the claim.
	Paused State = "Paused"
	// Deleting says that the claim is to go.
	Deleting State = "Deleting"
)

// Explanation of one claim.
type Explanation struct {
	Object plan.Object `json:"claim"`
	State  State       `json:"state"`

	// Since when the claim is in that state, as far as that is known.
	Since *time.Time `json:"since,omitempty"`

	// Cause of a claim that is not ready.
	Cause *Cause `json:"cause,omitempty"`

	// Also is what else is not as it should be: further causes, and what does not keep the claim
	// from being ready.
	Also []Cause `json:"also,omitempty"`

	// Tree of what the claim made: itself, what it composes, and what these made, the
	// children behind their parent.
	Tree []Node `json:"tree"`

	// Recent happenings, the oldest first.
	Recent []Happening `json:"recent,omitempty"`

	// Unknown is what could not be read, and what that means.
	Unknown []string `json:"unknown,omitempty"`
}

// Cause of a trouble.
type Cause struct {
	// Object that is in trouble.
	Object plan.Object `json:"object"`

	// Message is a sentence without a full stop.
	Message string `json:"message"`

	// Since when, as far as that is known.
	Since *time.Time `json:"since,omitempty"`

	Evidence []Evidence `json:"evidence,omitempty"`

	// Do says what to do about it, in sentences without full stops.
	Do []string `json:"do,omitempty"`

	rank rank
}

// rank of causes, from the one that counts most.
type rank int

const (
	// lasting does not pass by itself, as far as one can tell.
	lasting rank = iota
	// reported by an object of Storeplane's in its conditions.
	reported
	// passing by itself, sooner or later.
	passing
	// stated by a claim of itself.
	stated
	// progressing is on its way.
	progressing
)

// Source of an evidence.
type Source string

// The sources.
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

// Evidence of a cause: what was seen, and where.
type Evidence struct {
	Source Source      `json:"source"`
	Object plan.Object `json:"object"`

	// At is when it was seen last.
	At *time.Time `json:"at,omitempty"`

	Text string `json:"text"`
}

// Node of a tree.
type Node struct {
	// Depth from the claim, which has 0.
	Depth  int         `json:"depth"`
	Object plan.Object `json:"object"`

	// Ready tells whether it is healthy.
	Ready bool `json:"ready"`

	// Message says in short why it is not.
	Message string `json:"message,omitempty"`
}

// Happening that an event, an edit or a container's end tells of.
type Happening struct {
	At     time.Time   `json:"at"`
	Object plan.Object `json:"object"`

	// Count of how often.
	Count int `json:"count"`

	Message string `json:"message"`
}
