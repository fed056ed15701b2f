package backup

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TypeVerified tells whether the backups were proven to restore.
const TypeVerified xpv2.ConditionType = "Verified"

// Reasons of the condition Ready that are not those of a Failure or a Problem.
const (
	ReasonInvalidSchedule xpv2.ConditionReason = "InvalidSchedule"
	ReasonCronJobNotFound xpv2.ConditionReason = "CronJobNotFound"
	ReasonChecking        xpv2.ConditionReason = "Checking"
	ReasonNoBackup        xpv2.ConditionReason = "NoBackup"
	ReasonBackupOverdue   xpv2.ConditionReason = "BackupOverdue"
	ReasonPodNotStarted   xpv2.ConditionReason = "PodNotStarted"
	ReasonAlreadyExists   xpv2.ConditionReason = "AlreadyExists"
	ReasonKept            xpv2.ConditionReason = "Kept"
	ReasonEscrowNotFound  xpv2.ConditionReason = "EscrowNotFound"
	ReasonEscrowPending   xpv2.ConditionReason = "EscrowPending"
	ReasonEscrowDiffers   xpv2.ConditionReason = "EscrowDiffers"
)

// Reasons of the condition Verified that are not those of a Failure.
const (
	ReasonRestored            xpv2.ConditionReason = "Restored"
	ReasonVerificationPending xpv2.ConditionReason = "VerificationPending"
	ReasonDisabled            xpv2.ConditionReason = "Disabled"
	ReasonVerifyLater         xpv2.ConditionReason = "VerificationOverdue"
	ReasonUnsealed            xpv2.ConditionReason = "Unsealed"
)

// condition at a time; the one that is there keeps its own if nothing changed.
func condition(t xpv2.ConditionType, status corev1.ConditionStatus, reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return xpv2.Condition{Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)}
}

func ready(message string, now time.Time) xpv2.Condition {
	return condition(xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable, message, now)
}

func unready(reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return condition(xpv2.TypeReady, corev1.ConditionFalse, reason, message, now)
}

// proven though plain backups may be beside those that are sealed.
func proven(unsealed bool, now time.Time) xpv2.Condition {
	const message = "A backup was restored and found good"
	if unsealed {
		return condition(TypeVerified, corev1.ConditionTrue, ReasonUnsealed, message+". Plain ones of before encryption was turned on are in the store: they are not restored while it is on, and are deleted by retention", now)
	}
	return condition(TypeVerified, corev1.ConditionTrue, ReasonRestored, message, now)
}

func unproven(reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return condition(TypeVerified, corev1.ConditionUnknown, reason, message, now)
}

func disproven(reason xpv2.ConditionReason, message string, now time.Time) xpv2.Condition {
	return condition(TypeVerified, corev1.ConditionFalse, reason, message, now)
}
