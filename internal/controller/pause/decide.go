package pause

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// paused is Crossplane's own annotation.
const paused = meta.AnnotationKeyReconciliationPaused

// action on one object.
type action string

const (
	leave  action = "leave"
	pause  action = "pause"
	resume action = "resume"
)

// decide what becomes of an object with these annotations. with names the claim
// that composes it while that one is paused, and is empty otherwise. An object
// that a person has told not to be paused goes on.
func decide(annotations map[string]string, with string) action {
	own, mark := annotations[paused], annotations[appsv1.PausedWithAnnotation]
	switch {
	case with == "" && mark != "":
		return resume
	case with == "":
		return leave
	case own != "" && own != "true":
		return leave
	case own == "true" && mark == with:
		return leave
	default:
		return pause
	}
}

// annotations that an action applies: those that are left out are taken away
// where nobody else has set them.
func (a action) annotations(with string) map[string]string {
	if a == pause {
		return map[string]string{paused: "true", appsv1.PausedWithAnnotation: with}
	}
	return nil
}
