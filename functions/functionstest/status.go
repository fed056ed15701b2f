package functionstest

import (
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

// Phase returns the phase in the claim's status.
func (c *Crossplane) Phase() string { return Get(c.Claim, "status", "phase").GetStringValue() }

// Message returns the message in the claim's status.
func (c *Crossplane) Message() string { return Get(c.Claim, "status", "message").GetStringValue() }

// Condition returns the status and the message of a condition of the claim.
func (c *Crossplane) Condition(typ string) (status, message string) {
	f := c.conditionFields(typ)
	return f["status"].GetStringValue(), f["message"].GetStringValue()
}

// ConditionLine returns a condition of the claim in one line: its status, reason and
// message.
func (c *Crossplane) ConditionLine(typ string) string {
	f := c.conditionFields(typ)
	return strings.TrimSpace(f["status"].GetStringValue() + " " + f["reason"].GetStringValue() + " " + f["message"].GetStringValue())
}

// conditionFields returns a condition of the claim, nil where there is none.
func (c *Crossplane) conditionFields(typ string) map[string]*structpb.Value {
	for _, v := range Get(c.Claim, "status", "conditions").GetListValue().GetValues() {
		if f := v.GetStructValue().GetFields(); f["type"].GetStringValue() == typ {
			return f
		}
	}
	return nil
}

// ComponentStatus returns a component of the claim's status in one line: ready, or its
// message.
func (c *Crossplane) ComponentStatus(name string) string {
	for _, v := range Get(c.Claim, "status", "components").GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		switch {
		case f["name"].GetStringValue() != name:
		case f["ready"].GetBoolValue():
			return "ready"
		default:
			return f["message"].GetStringValue()
		}
	}
	return ""
}

// Waiting returns the names of the components that a response applies and does not mark as ready.
func Waiting(rsp *fnv1.RunFunctionResponse) []string {
	var out []string
	for n, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
