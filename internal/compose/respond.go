package compose

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/structs"
)

// Respond runs an intent for a request and returns the response. Errors become results of the
// response.
func Respond(req *fnv1.RunFunctionRequest, intent Intent, source Source) *fnv1.RunFunctionResponse {
	rsp := newResponse(req)
	claim := NewClaim(req, source)

	plan, err := intent(claim)
	var decision *Decision
	if err == nil {
		decision, err = Decide(claim, plan)
	}
	if err == nil {
		err = claim.checkExisting(decision)
	}
	if len(claim.asked) > 0 {
		rsp.Requirements = &fnv1.Requirements{Resources: claim.asked}
	}
	if errors.Is(err, ErrPending) {
		// A fatal result would end the call before anything is fetched. This response is not
		// applied, and if it were, nothing would be lost.
		keepAll(rsp, claim)
		return rsp
	}
	if err != nil {
		return refuse(rsp, claim, plan, err)
	}
	if decision.upgrade.waits() && plan.Upgrade.Window != nil {
		claim.RequeueWithin(claim.begins(plan.Upgrade))
	}
	outcome := newOutcome(claim, plan, decision)

	setResources(rsp, decision)
	if err := setStatus(rsp, claim, plan.Status(outcome)); err != nil {
		return refuse(newResponse(req), claim, nil, err)
	}
	isOver := outcome.Ready || isFailed(desiredStatus(rsp)[appsv1.FieldPhase])
	setObservedGeneration(rsp, claim, isOver && claim.isAbout("Ready"))
	if holdsStatus(rsp, claim, decision, outcome) {
		rsp.Desired.Composite.Resource = req.GetDesired().GetComposite().GetResource()
		if err := keepStatus(rsp, claim); err != nil {
			return refuse(newResponse(req), claim, nil, err)
		}
	}
	var stopped refusal
	if decision.Stopped || decision.LeftOut {
		stopped = decision.refused
	}
	if err := stopped.remember(rsp, claim); err != nil {
		return refuse(newResponse(req), claim, nil, err)
	}
	probeCircuit(rsp, claim)
	dropEmptyStatus(rsp)
	settled := settle(rsp, claim, outcome)

	conditions := []Condition{accepted(claim.settingsProblem), pruned(decision.Kept), stalled(rsp, claim)}
	if plan.Upgrade != nil {
		conditions = append(conditions, decision.upgrade.condition(claim))
	}
	if plan.Conditions != nil {
		conditions = append(conditions, holdConditions(claim, plan.Conditions(outcome), settled)...)
	}
	for _, c := range conditions {
		rsp.Conditions = append(rsp.Conditions, c.toProto())
	}
	if decision.LeftOut {
		claim.RequeueWithin(max(time.Second, decision.refused.due(claim).Sub(claim.Now())))
	}
	rsp.Meta.Ttl = durationpb.New(claim.ttl(settled, plan.PollInterval))
	switch {
	case outcome.Ready && !settled:
		rsp.Meta.Ttl = durationpb.New(reportedTTL)
	case decision.Stopped:
		rsp.Meta.Ttl = durationpb.New(max(time.Second, decision.refused.due(claim).Sub(claim.Now())))
	}
	return rsp
}

// Refuse returns the response to a request that could not be composed at all.
func Refuse(req *fnv1.RunFunctionRequest, err error) *fnv1.RunFunctionResponse {
	return refuse(newResponse(req), NewClaim(req, nil), nil, err)
}

// keepAll keeps all composed objects as they are.
func keepAll(rsp *fnv1.RunFunctionResponse, c *Claim) {
	for name, r := range c.observed {
		if !c.adopted[name] {
			rsp.Desired.Resources[name] = &fnv1.Resource{Resource: c.keep(r.GetResource()), Ready: fnv1.Ready_READY_FALSE}
		}
	}
}

// newResponse returns a response with what functions before this one desired.
func newResponse(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	rsp := &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag(), Ttl: durationpb.New(initialTTL)},
		Context: req.GetContext(),
		Desired: &fnv1.State{
			Composite: &fnv1.Resource{
				Resource:          req.GetDesired().GetComposite().GetResource(),
				ConnectionDetails: req.GetDesired().GetComposite().GetConnectionDetails(),
			},
			Resources: make(map[string]*fnv1.Resource, len(req.GetDesired().GetResources())),
		},
	}
	maps.Copy(rsp.GetDesired().GetResources(), req.GetDesired().GetResources())
	return rsp
}

// setResources sets the objects to apply, and which of them are ready.
func setResources(rsp *fnv1.RunFunctionResponse, d *Decision) {
	for name, obj := range d.Apply {
		ready := fnv1.Ready_READY_TRUE
		if h, declared := d.Health[name]; declared && !h.IsHealthy() {
			ready = fnv1.Ready_READY_FALSE
		}
		rsp.Desired.Resources[name] = &fnv1.Resource{Resource: obj, Ready: ready}
	}
}

// handledReconcile is Crossplane's own field of a claim's status.
// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/reconciler.go#L621-L626
const handledReconcile = "lastHandledReconcileAt"

// setStatus sets the claim's status. Crossplane applies it as a whole, so fields that are left out
// are removed.
func setStatus(rsp *fnv1.RunFunctionResponse, c *Claim, status any) error {
	s, ok := status.(*structpb.Struct)
	if !ok {
		var err error
		if s, err = structs.Encode(status); err != nil {
			return fmt.Errorf("cannot report status: %w", err)
		}
	}
	// What functions before this one desired belongs to the request, which a call that has timed
	// out may still read: it is copied, not changed.
	xr := shallow(rsp.GetDesired().GetComposite().GetResource())
	for _, f := range []string{"apiVersion", "kind"} {
		xr.Fields[f] = c.composite.GetFields()[f]
	}
	merged := shallow(xr.GetFields()["status"].GetStructValue())
	// Crossplane records here which request to reconcile it has answered.
	if at := c.status(handledReconcile); at != nil {
		merged.Fields[handledReconcile] = at
	}
	maps.Copy(merged.GetFields(), s.GetFields())
	xr.Fields["status"] = structpb.NewStructValue(merged)
	rsp.Desired.Composite.Resource = xr
	return nil
}

// dropEmptyStatus removes a status without fields: to apply it would be a write.
func dropEmptyStatus(rsp *fnv1.RunFunctionResponse) {
	if len(desiredStatus(rsp)) == 0 {
		delete(rsp.GetDesired().GetComposite().GetResource().GetFields(), "status")
	}
}

// refuse reports an error. While objects of the claim exist the result is fatal, so that Crossplane
// applies and removes nothing. The claim's other conditions are repeated, or Crossplane would set
// them to Unknown. Before any object exists there is nothing to protect, and the status reports
// Failed.
//
// Changes that must be made nevertheless, like the renewal of a certificate, are applied when they
// are due, and all else is kept as it is: in that pass the result is a warning. It is a warning
// also in one pass of a refused edit, in which the status reports that the edit's generation was
// observed: without that kstatus would wait for the edit for ever.
func refuse(rsp *fnv1.RunFunctionResponse, c *Claim, p *Plan, err error) *fnv1.RunFunctionResponse {
	reason := appsv1.ReasonInternalError
	if invalid := (*InvalidError)(nil); errors.As(err, &invalid) {
		reason = invalid.reason
	}
	rsp.Conditions = []*fnv1.Condition{
		Condition{Type: appsv1.TypeAccepted, Reason: reason, Message: err.Error()}.toProto(),
		Condition{Type: appsv1.TypeStalled, True: true, Reason: reason, Message: err.Error()}.toProto(),
	}

	rsp.Meta.Ttl = durationpb.New(c.ttl(false, 0))
	severity := fnv1.Severity_SEVERITY_FATAL
	switch {
	case reason != appsv1.ReasonInternalError && c.composed == 0:
		severity = fnv1.Severity_SEVERITY_WARNING
		rsp.Desired.Composite.Ready = fnv1.Ready_READY_FALSE
		failed := struct {
			Phase   Phase  `json:"phase"`
			Message string `json:"message"`
		}{Failed, err.Error()}
		if serr := setStatus(rsp, c, failed); serr != nil {
			severity = fnv1.Severity_SEVERITY_FATAL
			break
		}
		setObservedGeneration(rsp, c, c.isStalled())
	default:
		due, pending := maintenance(rsp, c, p)
		if pending {
			// As in Respond: a fatal result would end the call before anything
			// is fetched.
			rsp.Conditions = nil
			keepAll(rsp, c)
			return rsp
		}
		news := reason != appsv1.ReasonInternalError && c.isStalled() && !c.isObserved()
		if (len(due) > 0 || news || c.isProbeDue()) && maintain(rsp, c, due) {
			severity = fnv1.Severity_SEVERITY_WARNING
		}
		rsp.Conditions = append(rsp.Conditions, refusedConditions(c, p)...)
	}
	rsp.Results = []*fnv1.Result{{
		Severity: severity,
		Message:  err.Error(),
		Reason:   &reason,
		Target:   fnv1.Target_TARGET_COMPOSITE.Enum(),
	}}
	return rsp
}

// maintenance returns the changes that are due, and whether resources must be fetched first.
func maintenance(rsp *fnv1.RunFunctionResponse, c *Claim, p *Plan) (due map[string]*structpb.Struct, pending bool) {
	if p == nil || p.Maintain == nil || c.IsReview() {
		return nil, false
	}
	due, err := p.Maintain()
	if len(c.asked) > 0 {
		rsp.Requirements = &fnv1.Requirements{Resources: c.asked}
	}
	if err != nil {
		return nil, errors.Is(err, ErrPending)
	}
	return due, false
}

// maintain applies the changes that are due and keeps all other composed objects as they are. It
// returns false if it cannot. The status stays as it is too, except for the observed generation.
// Ready stays unless it is about an older generation: Crossplane would give it the newest one,
// which is refused.
func maintain(rsp *fnv1.RunFunctionResponse, c *Claim, due map[string]*structpb.Struct) bool {
	if err := keepStatus(rsp, c); err != nil {
		return false
	}
	setObservedGeneration(rsp, c, c.isStalled())
	probeCircuit(rsp, c)
	keepAll(rsp, c)
	rsp.Desired.Composite.Ready = fnv1.Ready_READY_FALSE
	// Ready alone is not enough: a condition may have the generation of an edit that was made after
	// the pass that set it.
	if c.isReady() && c.wasReady() {
		rsp.Desired.Composite.Ready = fnv1.Ready_READY_TRUE
	}
	for name, obj := range due {
		rsp.Desired.Resources[name] = &fnv1.Resource{Resource: obj, Ready: fnv1.Ready_READY_TRUE}
	}
	return true
}

// crossplaneConditions are the conditions that Crossplane sets itself. It ignores those of
// functions.
var crossplaneConditions = []string{"Ready", "Synced", "Healthy", "UpToDate", appsv1.TypeResponsive}

// refusedConditions returns the claim's conditions as they are, with the faults of the plan in the
// place of those of their types, and without those that Crossplane or a refusal sets.
func refusedConditions(c *Claim, p *Plan) []*fnv1.Condition {
	faults := map[string]Condition{}
	if p != nil && p.Faults != nil {
		for _, f := range p.Faults() {
			faults[f.Type] = f
		}
	}
	var out []*fnv1.Condition
	for _, v := range c.status("conditions").GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		typ := f["type"].GetStringValue()
		if typ == appsv1.TypeAccepted || typ == appsv1.TypeStalled || slices.Contains(crossplaneConditions, typ) || f["status"].GetStringValue() == "Unknown" {
			continue
		}
		if fault, ok := faults[typ]; ok {
			out = append(out, fault.toProto())
			continue
		}
		out = append(out, Condition{
			Type:    typ,
			True:    f["status"].GetStringValue() == "True",
			Reason:  f["reason"].GetStringValue(),
			Message: f["message"].GetStringValue(),
		}.toProto())
	}
	return out
}

// shallow returns a shallow copy of a struct.
func shallow(s *structpb.Struct) *structpb.Struct {
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(s.GetFields())+1)}
	maps.Copy(out.GetFields(), s.GetFields())
	return out
}
