package pause

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// paused is Crossplane's own annotation.
const paused = meta.AnnotationKeyReconciliationPaused

// action is what to do with one object.
type action string

const (
	leave  action = "leave"
	pause  action = "pause"
	resume action = "resume"
)

// decide returns what to do with an object that has these annotations. with names the claim that
// composes it while that claim is paused, and is empty otherwise. An object on which a user has set
// crossplane.io/paused to another value than "true" is not paused.
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

// annotations returns the annotations that an action applies. Those that are left out are removed,
// unless another field manager has set them.
func (a action) annotations(with string) map[string]string {
	if a == pause {
		return map[string]string{paused: "true", appsv1.PausedWithAnnotation: with}
	}
	return nil
}
