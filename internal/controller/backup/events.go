package backup

import (
	"errors"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// turned are the reasons of the events for conditions that become True.
var turned = map[xpv2.ConditionType]event.Reason{
	xpv2.TypeReady:        backupv1.ReasonReady,
	backupv1.TypeVerified: backupv1.ReasonVerified,
	backupv1.TypeEscrowed: backupv1.ReasonEscrowed,
}

// events returns the events for what has changed.
func events(b *backupv1.Backup, now backupv1.BackupObservation, conditions []xpv2.Condition) []event.Event {
	var out []event.Event
	known := b.Status.AtProvider
	if f := now.LastFailure; f != nil && (known.LastFailure == nil || !known.LastFailure.Time.Equal(&f.Time)) {
		out = append(out, event.Warning(backupv1.ReasonBackupFailed, errors.New(f.Reason+": "+f.Message)))
	}
	if t := now.LastSuccessfulTime; t != nil && after(t.Time, known.LastSuccessfulTime) && known.CatalogTime != nil {
		out = append(out, event.Normal(backupv1.ReasonBackupSucceeded, "A backup was made"))
	}
	for _, c := range conditions {
		was := b.GetCondition(c.Type)
		if was.Status == c.Status && was.Reason == c.Reason {
			continue
		}
		switch c.Status {
		case corev1.ConditionFalse:
			if c.Reason != backupv1.ReasonChecking {
				out = append(out, event.Warning(event.Reason(c.Reason), errors.New(c.Message)))
			}
		case corev1.ConditionTrue:
			out = append(out, event.Normal(turned[c.Type], text(c)))
		case corev1.ConditionUnknown:
		}
	}
	return out
}

func text(c xpv2.Condition) string {
	if c.Message != "" {
		return c.Message
	}
	return "The database and the store are reached, and backups are made in time"
}
