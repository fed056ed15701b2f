package harness

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Claim is what every claim says of itself.
type Claim struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		appsv1.CommonStatus `json:",inline"`

		Phase      string             `json:"phase"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// ClaimOf reads a claim; the zero Claim for nil.
func ClaimOf(u *unstructured.Unstructured) Claim {
	c := Claim{}
	if u != nil {
		// What cannot be read stays empty, and is missed by whoever asks.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c)
	}
	return c
}

// Condition of a type; its zero value when there is none.
func (c Claim) Condition(typ string) metav1.Condition {
	for _, cond := range c.Status.Conditions {
		if cond.Type == typ {
			return cond
		}
	}
	return metav1.Condition{}
}

// Is tells whether a condition is True.
func (c Claim) Is(typ string) bool { return c.Condition(typ).Status == metav1.ConditionTrue }

// Component of the claim, and whether it has one of that name.
func (c Claim) Component(name string) (appsv1.ComponentStatus, bool) {
	for _, s := range c.Status.Components {
		if s.Name == name {
			return s, true
		}
	}
	return appsv1.ComponentStatus{}, false
}

// Ready tells whether all of the claim, as it is now, is healthy.
func (c Claim) Ready() bool {
	return c.Is("Ready") && c.Is("Synced") && c.Is("Accepted") && c.Status.Phase == "Running" &&
		c.Status.ReadyGeneration == c.Metadata.Generation && c.Status.ObservedGeneration == c.Metadata.Generation && c.Condition("Ready").ObservedGeneration == c.Metadata.Generation
}

// String says what a person would ask: how far it is, and what it waits for.
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
