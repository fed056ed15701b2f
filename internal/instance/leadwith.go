package instance

import "strings"

// LeadWithAnnotation on a DatabaseCluster names the volume claim to lead with where the data
// alone does not decide it. Its value is <volume claim>@<state>, with the LeadState that it is
// for. So it has no effect any more once a primary leads: if it stayed on the object, or in a
// file that is applied again, it would otherwise decide a case that no user has examined.
const LeadWithAnnotation = "storeplane.example.com/lead-with"

// LeadState returns the state of a DatabaseCluster for which an annotation holds: the first part
// of its UID, followed by -<what its last primary began with> if there was one. It is "" for an
// unknown UID.
func LeadState(uid, began string) string {
	first, _, _ := strings.Cut(uid, "-")
	if first == "" || began == "" {
		return first
	}
	return first + "-" + began
}

// LeadWith returns the volume claim in the value of the annotation, or "" if the value is for
// another state.
func LeadWith(value, state string) string {
	claim, of, _ := strings.Cut(value, "@")
	if state == "" || of != state {
		return ""
	}
	return claim
}

// LeadWithAdvice returns how to write the annotation for a state.
func LeadWithAdvice(state string) string { return LeadWithAnnotation + "=<volume claim>@" + state }
