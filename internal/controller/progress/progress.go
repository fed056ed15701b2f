// Package progress reports how far a managed resource is with its newest generation, in the way
// that kstatus reads: condition Stalled, and status.observedGeneration.
//
// crossplane-runtime defines both the field and its methods, and leaves it to the provider
// to set it
// (https://github.com/crossplane/crossplane/blob/v2.4.0/apis/core/v2/observation.go#L20-L25).
package progress

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// TypeStalled is the condition that is True while a managed resource does not become Ready without
// a change.
const TypeStalled xpv2.ConditionType = appsv1.TypeStalled

// ReasonNotStalled is the reason of condition Stalled while it is False.
const ReasonNotStalled xpv2.ConditionReason = backupv1.ReasonNotStalled

// Object is a managed resource whose progress is reported.
type Object interface {
	metav1.Object
	GetCondition(ct xpv2.ConditionType) xpv2.Condition
	SetConditions(c ...xpv2.Condition)
	SetObservedGeneration(generation int64)
}

// Report sets condition Stalled and the observed generation of an object whose condition Ready was
// set. done means that all that the newest generation requests was carried out. stalled means that
// the object does not become Ready without a change: while it is not Ready, condition Stalled is
// True, with the reason and the message of Ready.
func Report(o Object, stalled, done bool) {
	ready := o.GetCondition(xpv2.TypeReady)
	isReady := ready.Status == corev1.ConditionTrue
	c := xpv2.Condition{Type: TypeStalled, Status: corev1.ConditionFalse, Reason: ReasonNotStalled, LastTransitionTime: ready.LastTransitionTime}
	if stalled = stalled && !isReady; stalled {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, ready.Reason, ready.Message
	}
	o.SetConditions(c.WithObservedGeneration(o.GetGeneration()))
	if stalled || isReady && done {
		o.SetObservedGeneration(o.GetGeneration())
	}
}
