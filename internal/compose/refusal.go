package compose

import (
	"regexp"
	"slices"
	"strings"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/structs"
	"github.com/storeplane/storeplane/internal/text"
)

// refusal is what Crossplane reports, in the condition Synced, of objects of a claim that the API
// server does not accept
// (https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/reconciler.go#L760-L893):
//
//   - Of objects that are invalid (422) it names at most three, and continues with the others.
//     The cause is in the claim's events only.
//   - At any other error, of a webhook or a quota for example, it stops, and writes no status
//     at all.
type refusal struct {
	// invalid are the names of invalid components, and more is true if there are others.
	invalid []string
	more    bool

	// stopped is the component at which Crossplane stopped, and why is the error.
	stopped, why string

	// isNew is true if that was in the last pass.
	isNew bool

	// first is when Crossplane first stopped with the claim's current spec, and last is when
	// the component was last tried.
	first, last time.Time
}

const refusalPrefix = "Unsynced resources: "

var stoppedAt = regexp.MustCompile(`cannot apply composed resource "([^"]+)": (.*)`)

// refusal returns the refusal of the claim's current spec. Where Crossplane stopped, the
// condition reports that only until the next pass, so the status records it.
func (c *Claim) refusal() refusal {
	r, was := c.unsynced(), c.pastRefusal()
	switch {
	case r.stopped != "":
		r.last, r.isNew = c.Now(), true
		if r.first = was.first; r.first.IsZero() {
			r.first = r.last
		}
	case was.stopped != "" && !c.Now().IsZero() && c.Now().Before(was.due(c)):
		r.stopped, r.why, r.first, r.last = was.stopped, was.why, was.first, was.last
	}
	return r
}

// unsynced returns the refusal that the condition Synced reports.
func (c *Claim) unsynced() refusal {
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

// refusalField is the status field that records where Crossplane stopped.
const refusalField = "refusal"

// pastRefusal returns the refusal that the status records of the claim's current spec.
func (c *Claim) pastRefusal() refusal {
	var was appsv1.Refusal
	if err := structs.Decode(c.status(refusalField).GetStructValue(), &was); err != nil || was.SpecDigest != c.specDigest() {
		return refusal{} // A record that cannot be read is ignored: the component is tried again.
	}
	return refusal{stopped: was.Component, why: was.Message, first: was.FirstTime.Time, last: was.LastTime.Time}
}

// due returns when a component at which Crossplane stopped is tried again. Each try is a write that
// begins the next pass, so tries become rarer the longer the component is refused.
func (r refusal) due(c *Claim) time.Time {
	after := grown(r.last.Sub(r.first), initialTTL, unsettledTTL)
	if c.Observed(r.stopped) == nil {
		after = max(after, refusedCreationTTL)
	}
	return r.last.Add(after)
}

// refusedCreationTTL is the shortest time after which the creation of an object is tried again. An
// attempt takes more writes than that of a change: the reference to the object is added before it,
// and removed after it. On a cluster it took about 20 tokens of Crossplane's circuit breaker, which
// gets one each second.
const refusedCreationTTL = 30 * time.Second

// remember records in the status of a response where Crossplane stopped, and removes the record in
// a pass that tries again: Crossplane writes that status if nothing is refused.
func (r refusal) remember(rsp *fnv1.RunFunctionResponse, c *Claim) error {
	if r.first.IsZero() {
		delete(desiredStatus(rsp), refusalField)
		return nil
	}
	s, err := structs.Encode(&appsv1.Refusal{
		Component: r.stopped, Message: text.Clip(r.why, maxRefusal), SpecDigest: c.specDigest(),
		FirstTime: metav1.NewTime(r.first), LastTime: metav1.NewTime(r.last),
	})
	if err != nil {
		return err
	}
	desiredStatus(rsp)[refusalField] = structpb.NewStructValue(s)
	return nil
}

// maxRefusal is the number of characters of the API server's error that a claim repeats.
const maxRefusal = 300

// names reports whether a component was refused as invalid. If Crossplane did not name all of them,
// every component that is not as declared may be one.
func (r refusal) names(component string, applied bool) bool {
	return slices.Contains(r.invalid, component) || r.more && !applied
}

// isAny reports whether anything was refused as invalid.
func (r refusal) isAny() bool { return r.more || len(r.invalid) > 0 }

// Refuses is part of the message of a claim with an object that the API server does not accept.
const Refuses = "The API server refuses it"

// invalidStatus returns the health of a component that was refused as invalid.
func invalidStatus() health.Status {
	return health.Status{State: health.Failed, Message: Refuses + " as invalid: kubectl describe shows why in the events of this claim"}
}

// stoppedStatus returns the health of the component at which Crossplane stopped.
func (r refusal) stoppedStatus() health.Status {
	return health.Status{State: health.Failed, Message: Refuses + ": " + text.Clip(r.why, maxRefusal)}
}
