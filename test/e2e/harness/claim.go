package harness

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Claim holds the metadata and the part of the status that all kinds of claims share.
type Claim struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		appsv1.CommonStatus `json:",inline"`

		Phase      string             `json:"phase"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// ClaimOf converts an object to a Claim. It returns the zero Claim for nil.
func ClaimOf(u *unstructured.Unstructured) Claim {
	c := Claim{}
	if u != nil {
		// A field that cannot be converted stays empty, and the checks that need it fail.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c)
	}
	return c
}

// Condition returns the condition of a type, or the zero value if there is none.
func (c Claim) Condition(typ string) metav1.Condition {
	for _, cond := range c.Status.Conditions {
		if cond.Type == typ {
			return cond
		}
	}
	return metav1.Condition{}
}

// Is reports whether a condition is True.
func (c Claim) Is(typ string) bool { return c.Condition(typ).Status == metav1.ConditionTrue }

// Component returns the component of that name, and whether the claim has one.
func (c Claim) Component(name string) (appsv1.ComponentStatus, bool) {
	for _, s := range c.Status.Components {
		if s.Name == name {
			return s, true
		}
	}
	return appsv1.ComponentStatus{}, false
}

// Ready reports whether the claim is healthy at its current generation.
func (c Claim) Ready() bool {
	return c.Is("Ready") && c.Is("Synced") && c.Is("Accepted") && c.Status.Phase == "Running" &&
		c.Status.ReadyGeneration == c.Metadata.Generation && c.Status.ObservedGeneration == c.Metadata.Generation && c.Condition("Ready").ObservedGeneration == c.Metadata.Generation
}

// String describes the claim's phase and message, and the conditions that are not as they should
// be.
func (c Claim) String() string {
	if c.Metadata.Name == "" {
		return "it does not exist"
	}
	parts := []string{"phase " + c.Status.Phase}
	if c.Status.Message != "" {
		parts = append(parts, fmt.Sprintf("message %q", c.Status.Message))
	}
	for _, cond := range c.Status.Conditions {
		if (cond.Status == metav1.ConditionTrue) == (cond.Type == "Stalled") {
			parts = append(parts, fmt.Sprintf("%s %s (%s: %s)", cond.Type, cond.Status, cond.Reason, cond.Message))
		}
	}
	if c.Status.ReadyGeneration != c.Metadata.Generation {
		parts = append(parts, fmt.Sprintf("generation %d, ready was %d", c.Metadata.Generation, c.Status.ReadyGeneration))
	}
	return strings.Join(parts, ", ")
}
