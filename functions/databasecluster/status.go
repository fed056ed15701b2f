package databasecluster

import (
	"cmp"
	"slices"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
)

func (d *cluster) status(o compose.Outcome) *appsv1.DatabaseClusterStatus {
	l := d.live
	o.Common.PodFailure = d.podFailure()
	s := &appsv1.DatabaseClusterStatus{
		CommonStatus:     o.Common,
		Phase:            d.phase(o),
		Endpoint:         hostPort(d.traits.Port, d.Claim, primary, d.Namespace),
		ConnectionSecret: d.Name(connection),
		Primary:          l.primary(),
		Timeline:         cmp.Or(l.cluster.Timeline, l.timeline),
		Version:          l.version(),
		ReadyReplicas:    l.set.Status.ReadyReplicas,
	}
	if d.spec.Size > 1 {
		s.ReadOnlyEndpoint = hostPort(d.traits.Port, d.Claim, replica, d.Namespace)
	}
	if s.Phase == appsv1.PhaseDegraded && s.Message == "" {
		s.Message = cmp.Or(d.replication().problem(), d.volumes().problem(), d.archive().problem())
	}
	return s
}

// phase returns the phase of the claim. A change of the number of servers has a phase of its own.
func (d *cluster) phase(o compose.Outcome) appsv1.DatabaseClusterPhase {
	l := d.live
	switch {
	case o.Phase == compose.Running && d.spec.Hibernated:
		return "Hibernated"
	case o.Phase == compose.Running && (!d.replication().True || !d.volumes().True || slices.Contains([]string{appsv1.ReasonFailing, appsv1.ReasonRepositoryFull, appsv1.ReasonArchiveGap}, d.archive().reason)):
		// It serves, but needs attention.
		return appsv1.PhaseDegraded
	case o.Phase == compose.Running:
		return appsv1.PhaseRunning
	case o.Phase == compose.Degraded:
		return appsv1.PhaseDegraded
	case o.Phase == compose.Failed:
		return appsv1.PhaseFailed
	case d.restores():
		return "Restoring"
	case o.Common.ReadyGeneration == 0:
		return "Creating"
	case l.set.Spec.Replicas != d.size() || l.set.Status.Replicas != d.size() || d.isNew():
		return "Scaling"
	default:
		return "Upgrading"
	}
}

// size returns the number of servers that the claim requests, 0 while it is hibernated.
func (d *inputs) size() int32 {
	if d.spec.Hibernated {
		return 0
	}
	return d.spec.Size
}

// isNew reports whether there is a server on which PostgreSQL has never run.
func (d *cluster) isNew() bool {
	for i := range d.size() {
		if d.live.members[d.podName(i)].Version == "" {
			return true
		}
	}
	return false
}
