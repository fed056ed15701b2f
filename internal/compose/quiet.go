package compose

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Each write to a claim takes two tokens of Crossplane's circuit breaker, one of the claim's bucket
// and one of its parent's, and begins a pass with all its applies for both
// (https://github.com/crossplane/crossplane/blob/v2.4.0/internal/circuit/token_bucket.go). So a
// claim that is starting reports what its parent or its team waits for, and not each step.

// startWindow is how long a claim that is not ready counts as starting. After it the claim reports
// each change.
const startWindow = time.Minute

// NotReadyFor returns for how long the claim has not been ready, counted from when it last was or
// from its last change of generation, and whether that is known. It is not known for a claim that
// is ready, for one that has never been composed, or where nothing may depend on the time.
func (c *Claim) NotReadyFor() (time.Duration, bool) {
	if c.conditionStatus("Ready") != "False" {
		return 0, false
	}
	return c.since("Ready")
}

// since returns how long ago a condition changed, and whether that is known.
func (c *Claim) since(typ string) (time.Duration, bool) {
	now := c.Now()
	at, err := time.Parse(time.RFC3339, c.condition(typ)["lastTransitionTime"].GetStringValue())
	if err != nil || now.IsZero() {
		return 0, false
	}
	return max(0, now.Sub(at)), true
}

// isStarting reports whether the claim is not ready, and has been so for less than startWindow.
func (c *Claim) isStarting() bool {
	age, known := c.NotReadyFor()
	return known && age < startWindow
}

// requeueOnceStarted makes a pass begin once the claim no longer counts as starting: what is held back until then is
// reported in it, and no event announces that.
func (c *Claim) requeueOnceStarted() {
	age, _ := c.NotReadyFor()
	c.RequeueWithin(startWindow - age + time.Second)
}

// isNested reports whether another composite resource composes the claim.
func (c *Claim) isNested() bool {
	for _, v := range c.meta("ownerReferences").GetListValue().GetValues() {
		if v.GetStructValue().GetFields()["controller"].GetBoolValue() {
			return true
		}
	}
	return false
}

// holdsStatus reports whether the status stays as it is because its changes can wait:
//
//   - In a pass that composes new objects. Crossplane writes their references and conditions about the
//     new generation. These writes begin the next pass, which writes once more, and a new status adds
//     no write to that one. So the first pass of a claim writes conditions and no status,
//     unless changes of a release wait for windows or waves: an edit before the second pass would be
//     held back with them, since the status has no release and no inputs yet. A claim that is
//     rendered from a file has no other pass.
//   - While a claim starts that another one composes: its parent has a status of its own, and
//     waits for Ready, another phase, or a failed pod.
//
// What never waits: readiness, a failure or a refusal and its end, a pod's failure and its end, and,
// but in the first pass, the settings that the claim must remember.
func holdsStatus(rsp *fnv1.RunFunctionResponse, c *Claim, d *Decision, o Outcome) bool {
	if c.IsReview() || o.Ready || o.Phase == Failed || hasNews(rsp, c) {
		return false
	}
	phase := c.status(appsv1.FieldPhase)
	isStep := phase != nil && proto.Equal(desiredStatus(rsp)[appsv1.FieldPhase], phase) && c.isNested() && c.isStarting()
	if isStep {
		c.requeueOnceStarted()
	}
	return isStep || (phase != nil || c.isStored() && !d.upgrade.mayWait()) && addsReferences(c, d)
}

// isStored reports whether the claim is that of an API server.
func (c *Claim) isStored() bool { return c.meta("resourceVersion").GetStringValue() != "" }

// hasNews reports whether the status of a response contains a change that must not wait.
func hasNews(rsp *fnv1.RunFunctionResponse, c *Claim) bool {
	desired := desiredStatus(rsp)
	if !proto.Equal(desired[appsv1.FieldPodFailure], c.status(appsv1.FieldPodFailure)) || isFailed(c.status(appsv1.FieldPhase)) {
		return true
	}
	return c.status(appsv1.FieldPhase) != nil && !proto.Equal(desired[appsv1.FieldAcceptedSettings], c.status(appsv1.FieldAcceptedSettings))
}

// addsReferences reports whether Crossplane will reference objects after this pass that it does not
// reference yet. It references every observed object, whatever its name. It also references an
// object that the API server refuses, which is never observed.
func addsReferences(c *Claim, d *Decision) bool {
	var before map[reference]bool
	for name, obj := range d.Apply {
		if c.IsComposed(name) {
			continue
		}
		if before == nil {
			before = c.references()
		}
		f := obj.GetFields()
		if !before[referenceOf(f, f["metadata"].GetStructValue().GetFields())] {
			return true
		}
	}
	return false
}

// references returns the references that Crossplane has written into the claim.
func (c *Claim) references() map[reference]bool {
	out := map[reference]bool{}
	for _, v := range c.SpecAt("crossplane").GetFields()["resourceRefs"].GetListValue().GetValues() {
		r := v.GetStructValue().GetFields()
		out[referenceOf(r, r)] = true
	}
	return out
}

// reference identifies an object in the claim's namespace.
type reference struct{ apiVersion, kind, name string }

func referenceOf(typed, named map[string]*structpb.Value) reference {
	return reference{typed["apiVersion"].GetStringValue(), typed["kind"].GetStringValue(), named["name"].GetStringValue()}
}

// keepStatus sets the desired status to the observed one, except for fields that functions before
// this one desire.
func keepStatus(rsp *fnv1.RunFunctionResponse, c *Claim) error {
	status := shallow(c.composite.GetFields()["status"].GetStructValue())
	delete(status.GetFields(), "conditions")
	for field := range desiredStatus(rsp) {
		delete(status.GetFields(), field)
	}
	return setStatus(rsp, c, status)
}

// holdConditions repeats conditions that are about to become True while the claim starts and has
// not settled, so that they are written together with Ready, and those with Settles that have another
// reason. A condition does not wait if it had failed, if the claim has been ready before and the reason
// was anything but waiting, or if it has been False for startWindow.
func holdConditions(c *Claim, conditions []Condition, settled bool) []Condition {
	if settled || !c.isStarting() {
		return conditions
	}
	isFirst := c.status(appsv1.FieldReadyGeneration).GetNumberValue() == 0
	out := make([]Condition, len(conditions))
	for i, cond := range conditions {
		was := c.condition(cond.Type)
		reason := was["reason"].GetStringValue()
		age, known := c.since(cond.Type)
		isAwaited := reason == appsv1.ReasonWaiting || reason == appsv1.ReasonPending || isFirst && reason != appsv1.ReasonFailed
		holds := cond.True || cond.Settles && isFirst && cond.Reason != appsv1.ReasonFailed
		if holds && was["status"].GetStringValue() == "False" && isAwaited && known && age < startWindow {
			cond = Condition{Type: cond.Type, Reason: reason, Message: was["message"].GetStringValue()}
			c.requeueOnceStarted()
		}
		out[i] = cond
	}
	return out
}

// circuitCooldown is the time after which Crossplane's circuit breaker closes with the next event:
// five minutes by default, and a margin, since the time of a condition has no fractions of a second
// and the condition is written after the breaker has opened.
// https://github.com/crossplane/crossplane/blob/v2.4.0/cmd/crossplane/core/core.go
const circuitCooldown = 5*time.Minute + 2*time.Second

// circuitProbe is the status field with the time at which the claim last caused an event itself.
const circuitProbe = "lastCircuitProbeTime"

// probeCircuit causes an event once the cooldown of an open circuit breaker is over: Crossplane
// closes the breaker only with the next event of the claim, and a claim at rest has none
// (https://github.com/crossplane/crossplane/issues/7703). The event is a change of the claim's own
// status.
func probeCircuit(rsp *fnv1.RunFunctionResponse, c *Claim) {
	last := c.status(circuitProbe)
	if c.isProbeDue() {
		last = structpb.NewStringValue(c.Now().UTC().Format(time.RFC3339))
	}
	if last != nil {
		desiredStatus(rsp)[circuitProbe] = last
	}
}

// isProbeDue reports whether a circuit breaker would close with the next event, and the claim has
// caused none within the cooldown.
func (c *Claim) isProbeDue() bool {
	open, known := c.circuitOpenFor()
	if !known || open < circuitCooldown {
		return false
	}
	at, err := time.Parse(time.RFC3339, c.status(circuitProbe).GetStringValue())
	return err != nil || c.Now().Sub(at) >= circuitCooldown
}

// circuitOpenFor returns for how long the claim's circuit breaker has been open, and false if it is
// closed or that is not known.
func (c *Claim) circuitOpenFor() (time.Duration, bool) {
	if c.isWatched() {
		return 0, false
	}
	return c.since(appsv1.TypeResponsive)
}
