package waves

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Claim as far as its upgrade depends on it.
type Claim struct {
	APIVersion, Kind, Namespace, Name string

	// UID of the claim, and of the claim that composes it, or "".
	UID, Owner types.UID

	// Release that its pods are of, and the one that waits, or "".
	Release, Pending string

	// Wave is the release that its wave upgrades it to, or "", and WaveBegan is when it began.
	Wave      string
	WaveBegan time.Time

	// Ready tells whether the claim is, and ReadySince since when it is or is not.
	Ready      bool
	ReadySince time.Time

	// UpgradedSince is when the claim's condition Upgraded last changed.
	UpgradedSince time.Time

	// Phase in its status, and what it says.
	Phase, Message string

	// IsAside tells whether nothing is to be expected of the claim: it is paused, being deleted,
	// or refused.
	IsAside bool
}

// Conditions of a claim that are read.
const (
	typeReady    = "Ready"
	typeAccepted = "Accepted"
	typeUpgraded = "Upgraded"
)

const pausedAnnotation = "crossplane.io/paused"

// Read a claim.
func Read(u *unstructured.Unstructured) Claim {
	a := u.GetAnnotations()
	c := Claim{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
		Wave: a[Annotation], WaveBegan: parseTime(a[BeganAnnotation]),
		IsAside: a[pausedAnnotation] == "true" || u.GetDeletionTimestamp() != nil,
	}
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		c.Owner = owner.UID
	}
	for _, f := range []struct {
		name string
		into *string
	}{{"release", &c.Release}, {"pendingRelease", &c.Pending}, {"phase", &c.Phase}, {"message", &c.Message}} {
		*f.into, _, _ = unstructured.NestedString(u.Object, "status", f.name)
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, each := range list {
		f, ok := each.(map[string]any)
		if !ok {
			continue
		}
		at, _ := f["lastTransitionTime"].(string)
		switch f["type"] {
		case typeReady:
			c.Ready, c.ReadySince = f["status"] == "True", parseTime(at)
		case typeUpgraded:
			c.UpgradedSince = parseTime(at)
		case typeAccepted:
			c.IsAside = c.IsAside || f["status"] == "False"
		}
	}
	return c
}

// parseTime of RFC 3339, or zero.
func parseTime(text string) time.Time {
	t, _ := time.Parse(time.RFC3339, text)
	return t
}
