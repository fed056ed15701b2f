package compose

import (
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/health"
)

// refusal is what Crossplane reports of objects of a claim that the API server
// has refused as invalid: it goes on with the others, and names these in the
// claim's condition Synced, at most three of them
// (https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/reconciler.go#L890-L893).
// Why is in the claim's events alone.
type refusal struct {
	components []string
	more       bool
}

const refusalPrefix = "Unsynced resources: "

// refusal of the claim as it is now: one of an earlier generation says nothing.
func (c *Claim) refusal() refusal {
	for _, v := range c.status("conditions").GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		names, ok := strings.CutPrefix(f["message"].GetStringValue(), refusalPrefix)
		if !ok || f["type"].GetStringValue() != "Synced" || f["status"].GetStringValue() != "False" {
			continue
		}
		if at, known := f["observedGeneration"]; known && int64(at.GetNumberValue()) != c.Generation() {
			continue
		}
		r := refusal{}
		for n := range strings.SplitSeq(names, ", ") {
			n = strings.TrimPrefix(n, "and ")
			if strings.HasSuffix(n, " more") {
				r.more = true
				continue
			}
			r.components = append(r.components, n)
		}
		return r
	}
	return refusal{}
}

// names tells whether a component that is not as it is declared may be one that
// was refused.
func (r refusal) names(component string) bool {
	return r.more || slices.Contains(r.components, component)
}

// status of a component that was refused.
func (refusal) status() health.Status {
	return health.Status{State: health.Failed, Message: "The API server refuses it as invalid: kubectl describe shows why in the events of this claim"}
}
