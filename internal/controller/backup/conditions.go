package backup

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// condition returns a condition with a time, which is only used if the condition changes.
func condition(t xpv2.ConditionType, status corev1.ConditionStatus, reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return xpv2.Condition{Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)}
}

func ready(message string, now time.Time) xpv2.Condition {
	return condition(xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable, message, now)
}

func unready(reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return condition(xpv2.TypeReady, corev1.ConditionFalse, reason, message, now)
}

// proven returns condition Verified as True. unsealed means that the store also has plain backups
// of before encryption was turned on.
func proven(unsealed bool, now time.Time) xpv2.Condition {
	const message = "A backup was restored and found good"
	if unsealed {
		return condition(backupv1.TypeVerified, corev1.ConditionTrue, backupv1.ReasonUnsealed, message+". Plain ones of before encryption was turned on are in the store: they are not restored while it is on, and are deleted by retention", now)
	}
	return condition(backupv1.TypeVerified, corev1.ConditionTrue, backupv1.ReasonRestored, message, now)
}

func unproven(reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return condition(backupv1.TypeVerified, corev1.ConditionUnknown, reason, message, now)
}

func disproven(reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return condition(backupv1.TypeVerified, corev1.ConditionFalse, reason, message, now)
}
