package functionstest

import (
	"maps"
	"slices"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Refused runs the function on a claim that has no objects yet, and returns the message of its
// refusal, empty where it is not refused.
func Refused(t testing.TB, claim string) string {
	t.Helper()
	c := New(t, claim)
	rsp := c.Run()
	if len(rsp.GetResults()) == 0 {
		return ""
	}
	r := rsp.GetResults()[0]
	if r.GetSeverity() != fnv1.Severity_SEVERITY_WARNING || r.GetReason() != "Invalid" {
		t.Errorf("want a warning that the claim is invalid, got %v", r)
	}
	if len(rsp.GetDesired().GetResources()) > 0 {
		t.Errorf("a refused claim applies nothing, got %v", slices.Sorted(maps.Keys(rsp.GetDesired().GetResources())))
	}
	status := Get(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue()
	if got := Get(status, "phase").GetStringValue(); got != appsv1.PhaseFailed {
		t.Errorf("want phase Failed, got %q", got)
	}
	if got := Get(status, "message").GetStringValue(); got != r.GetMessage() {
		t.Errorf("want the status to say %q, got %q", r.GetMessage(), got)
	}
	return r.GetMessage()
}

// RefusedWhileRunning settles a claim, changes it, and returns the message of the refusal, empty
// where the change is not refused. It fails the test where anything else changes.
func RefusedWhileRunning(t testing.TB, c *Crossplane, change func()) string {
	t.Helper()
	c.Settle()
	before := c.ComponentNames()
	change()
	phase := c.Phase()
	rsp := c.Reconcile()
	if len(rsp.GetResults()) == 0 {
		return ""
	}
	r := rsp.GetResults()[0]
	if r.GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
		t.Errorf("while something runs a refusal is fatal, so that nothing is applied or removed: got %v", r)
	}
	if len(rsp.GetDesired().GetResources()) > 0 {
		t.Errorf("a refused change applies nothing")
	}
	if !slices.Equal(before, c.ComponentNames()) || c.Phase() != phase {
		t.Errorf("a refused change changes nothing: want %v in phase %s, got %v in phase %s", before, phase, c.ComponentNames(), c.Phase())
	}
	if status, message := c.Condition(appsv1.TypeAccepted); status != "False" || message != r.GetMessage() {
		t.Errorf("want condition Accepted False %q, got %s %q", r.GetMessage(), status, message)
	}
	return r.GetMessage()
}
