package compose

import (
	"regexp"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/text"
)

// refusal is what Crossplane reports of objects of a claim that the API server does
// not take, in the condition Synced
// (https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/reconciler.go#L760-L893):
//
//   - What is invalid (422) it names, at most three of them, and goes on with the
//     others. Why is in the claim's events alone.
//   - At any other error, one that a webhook or a quota gives for example, it stops
//     there, and writes no status at all.
type refusal struct {
	// invalid components by name, and more says that there are others.
	invalid []string
	more    bool

	// stopped is the component at which Crossplane stopped, and why.
	stopped, why string
}

const refusalPrefix = "Unsynced resources: "

var stoppedAt = regexp.MustCompile(`cannot apply composed resource "([^"]+)": (.*)`)

// refusal of the claim as it is now: one of an earlier generation says nothing.
func (c *Claim) refusal() refusal {
	for _, v := range c.status("conditions").GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		if f["type"].GetStringValue() != "Synced" || f["status"].GetStringValue() != "False" {
			continue
		}
		if at, known := f["observedGeneration"]; known && int64(at.GetNumberValue()) != c.Generation() {
			continue
		}
		r := refusal{}
		message := f["message"].GetStringValue()
		if m := stoppedAt.FindStringSubmatch(message); m != nil {
			r.stopped, r.why = m[1], m[2]
		}
		names, ok := strings.CutPrefix(message, refusalPrefix)
		if !ok {
			return r
		}
		for n := range strings.SplitSeq(names, ", ") {
			n = strings.TrimPrefix(n, "and ")
			if strings.HasSuffix(n, " more") {
				r.more = true
				continue
			}
			r.invalid = append(r.invalid, n)
		}
		return r
	}
	return refusal{}
}

// names tells whether a component was refused as invalid. Of those that are not
// named any that is not as it is declared may be one.
func (r refusal) names(component string, applied bool) bool {
	return slices.Contains(r.invalid, component) || r.more && !applied
}

// isAny tells whether anything was refused as invalid.
func (r refusal) isAny() bool { return r.more || len(r.invalid) > 0 }

// Refuses is in the message of a claim of which the API server does not take an object.
const Refuses = "The API server refuses it"

// invalidStatus is the health of a component that was refused as invalid.
func invalidStatus() health.Status {
	return health.Status{State: health.Failed, Message: Refuses + " as invalid: kubectl describe shows why in the events of this claim"}
}

// stoppedStatus is the health of the component at which Crossplane stopped.
func (r refusal) stoppedStatus() health.Status {
	return health.Status{State: health.Failed, Message: Refuses + ": " + text.Clip(r.why, 300)}
}
