package databasecluster

import (
	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
)

func (d *cluster) status(o compose.Outcome, l *live) *appsv1.DatabaseClusterStatus {
	s := &appsv1.DatabaseClusterStatus{
		CommonStatus:     o.Common,
		Phase:            d.phase(o, l),
		Endpoint:         hostPort(d.Claim, primary, d.Namespace),
		ConnectionSecret: d.Name(connection),
		Primary:          l.primary,
		Version:          l.version(),
		ReadyReplicas:    l.set.Status.ReadyReplicas,
	}
	if d.spec.Size > 1 {
		s.ReadOnlyEndpoint = hostPort(d.Claim, replica, d.Namespace)
	}
	return s
}

// phase tells a change of the number of servers from any other.
func (d *cluster) phase(o compose.Outcome, l *live) appsv1.DatabaseClusterPhase {
	switch o.Phase {
	case compose.Running:
		return "Running"
	case compose.Degraded:
		return "Degraded"
	case compose.Failed:
		return "Failed"
	case compose.Pending, compose.Deploying:
	}
	st := l.set.Status
	switch {
	case o.Common.ReadyGeneration == 0:
		return "Creating"
	case l.set.Spec.Replicas != d.spec.Size || st.Replicas != d.spec.Size || st.ReadyReplicas != d.spec.Size && st.CurrentRevision == st.UpdateRevision:
		return "Scaling"
	default:
		return "Upgrading"
	}
}

// ConditionBackupHealthy tells whether there is a backup to rely on.
const conditionBackupHealthy = "BackupHealthy"

func (d *cluster) conditions(compose.Outcome) []compose.Condition {
	enabled := d.profile.Backups
	if b := d.spec.Backup; b != nil && b.Enabled != nil {
		enabled = *b.Enabled
	}
	if !enabled {
		return []compose.Condition{{Type: conditionBackupHealthy, True: true, Reason: "Disabled", Message: "No backups are asked for"}}
	}
	return []compose.Condition{{
		Type: conditionBackupHealthy, Reason: "NotAvailable",
		Message: "This version of Storeplane makes no backups yet: nothing of this database is backed up",
	}}
}
