package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/podfailure"
)

const (
	// recently is the largest age of a happening that is listed.
	recently = time.Hour
	// happenings is the largest number of happenings that are listed, the latest ones.
	happenings = 12
)

// routine are the reasons of events that occur for each new object.
var routine = map[string]bool{
	"ComposeResources": true, "SelectComposition": true, "CompositionSelection": true, "Scheduled": true, "Pulled": true, "Pulling": true,
	"Created": true, "Started": true, "SuccessfulCreate": true, "SuccessfulDelete": true, "SuccessfulAttachVolume": true, "NoPods": true,
	"ExternalProvisioning": true, "Provisioning": true, "ProvisioningSucceeded": true, "WaitForFirstConsumer": true, "WaitForPodScheduled": true,
}

// recent returns what happened to a claim and the objects below it, the oldest first.
func (f *facts) recent(claim *unstructured.Unstructured) []Happening {
	var out []Happening
	for _, u := range f.below(claim) {
		for _, e := range f.eventsOf[named{u.GetKind(), u.GetName()}] {
			if !isAbout(e, u) || e.Type != corev1.EventTypeWarning && routine[e.Reason] || e.Reason == "BackOff" || isBare(e) {
				continue
			}
			n := int(e.Count)
			if e.Series != nil {
				n = int(e.Series.Count)
			}
			out = append(out, Happening{At: seen(e), Object: objectOf(u), Count: n, Message: eventMessage(e)})
		}
		out = append(out, f.ends(u)...)
		if isClaim(u) || isManaged(u) {
			out = append(out, edits(u)...)
		}
	}
	out = slices.DeleteFunc(out, func(h Happening) bool { return f.Now.Sub(h.At) > recently })
	slices.SortStableFunc(out, func(a, b Happening) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	out = lastOfEach(out)
	return out[max(0, len(out)-happenings):]
}

// lastOfEach returns the last of equal happenings of an object, with their number.
func lastOfEach(all []Happening) []Happening {
	type what struct {
		object  plan.Object
		message string
	}
	times := map[what]int{}
	for _, h := range all {
		times[what{h.Object, h.Message}] += max(1, h.Count)
	}
	var out []Happening
	for _, h := range slices.Backward(all) {
		w := what{h.Object, h.Message}
		n, ok := times[w]
		if !ok {
			continue
		}
		delete(times, w)
		h.Count = n
		out = append(out, h)
	}
	slices.Reverse(out)
	return out
}

// eventMessage returns an event's reason and message in one line. The generated names of pods that
// could not be created are left out.
func eventMessage(e *corev1.Event) string {
	if e.Reason == "FailedCreate" {
		return e.Reason + ": " + podfailure.Uncreated(e.Message)
	}
	return eventEvidence(e).Text
}

// below returns an object and all objects below it.
func (f *facts) below(u *unstructured.Unstructured) []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{u}
	for _, c := range f.children(u) {
		out = append(out, f.below(c)...)
	}
	return out
}

// ends returns the ends of a pod's containers that failed.
func (f *facts) ends(u *unstructured.Unstructured) []Happening {
	p := f.pods[u.GetName()]
	if u.GetKind() != "Pod" || p == nil {
		return nil
	}
	var out []Happening
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		for _, t := range []*corev1.ContainerStateTerminated{s.LastTerminationState.Terminated, s.State.Terminated} {
			if t == nil || t.ExitCode == 0 {
				continue
			}
			out = append(out, Happening{At: t.FinishedAt.Time, Object: podObject(p), Message: fmt.Sprintf("container %s ended with exit code %d (%s)", s.Name, t.ExitCode, t.Reason)})
		}
	}
	return out
}

// edits returns the last edits of an object's spec by field managers other than Crossplane and the
// provider.
func edits(u *unstructured.Unstructured) []Happening {
	var out []Happening
	for _, m := range u.GetManagedFields() {
		if m.Subresource != "" || m.Time == nil || m.FieldsV1 == nil || !strings.Contains(string(m.FieldsV1.Raw), `"f:spec"`) {
			continue
		}
		if m.Manager == "provider" || strings.HasPrefix(m.Manager, "crossplane") || strings.HasPrefix(m.Manager, "apiextensions.crossplane.io") {
			continue
		}
		out = append(out, Happening{At: m.Time.Time, Object: objectOf(u), Message: "its spec was edited last by " + m.Manager})
	}
	return out
}
