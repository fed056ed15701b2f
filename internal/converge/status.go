package converge

import (
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// refusal returns why a function refuses the claim, or "".
func refusal(rsp *fnv1.RunFunctionResponse) string {
	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return r.GetMessage()
		}
	}
	for _, c := range rsp.GetConditions() {
		if c.GetType() == appsv1.TypeAccepted && c.GetStatus() == fnv1.Status_STATUS_CONDITION_FALSE {
			return c.GetMessage()
		}
	}
	return ""
}

// Refusal returns why a function refuses a claim, by the claim's status, or "".
func Refusal(claim *unstructured.Unstructured) string {
	for _, c := range conditions(claim) {
		if c["type"] == appsv1.TypeAccepted && c["status"] == "False" {
			message, _ := c["message"].(string)
			return message
		}
	}
	return ""
}

// setStatus writes the claim's status as Crossplane does: first with the old conditions, and then
// with the new ones. The latter is validated as by an API server.
func (p *play) setStatus(claim *object, rsp *fnv1.RunFunctionResponse) error {
	status, err := desiredStatus(rsp)
	if err != nil {
		return err
	}
	next := claim.live.DeepCopy()
	next.Object["status"] = status
	if old := conditions(claim.live); len(old) > 0 {
		writeConditions(next, old)
	}
	p.written(next)
	setConditions(next, conditionsOf(rsp, claim.live.GetGeneration()), conditions(claim.live))
	if !p.Unchecked {
		if err := p.Schemas.ValidateStatus(next); err != nil {
			return err
		}
	}
	claim.live = next
	claim.note()
	p.written(next)
	return nil
}

func (p *play) written(claim *unstructured.Unstructured) {
	if p.Written != nil {
		p.Written(claim.DeepCopy())
	}
}

func desiredStatus(rsp *fnv1.RunFunctionResponse) (map[string]any, error) {
	xr, err := toUnstructured(rsp.GetDesired().GetComposite().GetResource())
	if err != nil {
		return nil, err
	}
	status, _, err := unstructured.NestedMap(xr.Object, "status")
	if err != nil {
		return nil, fmt.Errorf("cannot read desired status: %w", err)
	}
	if status == nil {
		status = map[string]any{}
	}
	return status, nil
}

// conditionsOf returns the conditions of a response: the function's, which get no generation, and
// those that Crossplane derives.
func conditionsOf(rsp *fnv1.RunFunctionResponse, generation int64) []map[string]any {
	names := map[fnv1.Status]string{
		fnv1.Status_STATUS_CONDITION_TRUE:  "True",
		fnv1.Status_STATUS_CONDITION_FALSE: "False",
	}
	out := []map[string]any{condition(appsv1.TypeResponsive, "True", "WatchCircuitClosed", "", generation)}
	for _, c := range rsp.GetConditions() {
		status, ok := names[c.GetStatus()]
		if !ok {
			status = "Unknown"
		}
		out = append(out, condition(c.GetType(), status, c.GetReason(), c.GetMessage(), 0))
	}
	ready := Ready(rsp)
	return append(out,
		condition(string(xpv2.TypeSynced), "True", string(xpv2.ReasonReconcileSuccess), "", generation),
		condition(string(ready.Type), string(ready.Status), string(ready.Reason), ready.Message, generation))
}

// Ready returns the Ready condition that Crossplane derives from a response.
func Ready(rsp *fnv1.RunFunctionResponse) xpv2.Condition {
	switch rsp.GetDesired().GetComposite().GetReady() {
	case fnv1.Ready_READY_TRUE:
		return xpv2.Available()
	case fnv1.Ready_READY_FALSE:
		return xpv2.Creating()
	case fnv1.Ready_READY_UNSPECIFIED:
	}
	unready := make([]string, 0)
	for name, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			unready = append(unready, name)
		}
	}
	if len(unready) == 0 {
		return xpv2.Available()
	}
	return xpv2.Creating().WithMessage("Unready resources: " + resource.StableNAndSomeMore(resource.DefaultFirstN, unready))
}

func condition(typ, status, reason, message string, generation int64) map[string]any {
	c := map[string]any{"type": typ, "status": status, "reason": reason, "lastTransitionTime": now}
	if generation != 0 {
		c["observedGeneration"] = generation
	}
	if message != "" {
		c["message"] = message
	}
	return c
}

// conditions returns the conditions of an object, in their order.
func conditions(u *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	out := make([]map[string]any, 0, len(list))
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// setConditions sets the new conditions, and the old ones of other types: Crossplane never removes
// one. They are sorted by type.
func setConditions(u *unstructured.Unstructured, fresh, old []map[string]any) {
	for _, o := range old {
		if !slices.ContainsFunc(fresh, func(f map[string]any) bool { return f["type"] == o["type"] }) {
			fresh = append(fresh, o)
		}
	}
	slices.SortStableFunc(fresh, func(a, b map[string]any) int {
		x, _ := a["type"].(string)
		y, _ := b["type"].(string)
		return compareStrings(x, y)
	})
	writeConditions(u, fresh)
}

func writeConditions(u *unstructured.Unstructured, all []map[string]any) {
	list := make([]any, 0, len(all))
	for _, c := range all {
		list = append(list, c)
	}
	_ = unstructured.SetNestedSlice(u.Object, list, "status", "conditions")
}
