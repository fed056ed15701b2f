package databasecluster

import (
	"cmp"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/instance"
)

func progressing(message string) health.Status {
	return health.Status{State: health.Progressing, Message: message}
}

// judgeInstances judges what the instance managers report. The cluster takes writes once a primary
// has been elected, and is healthy once they report that the current desired state is applied.
func (d *cluster) judgeInstances(*structpb.Struct) health.Status {
	l := d.live
	switch {
	case d.spec.Hibernated:
		return health.Status{State: health.Healthy}
	case d.restores():
		message, failed := d.restoring()
		if failed {
			return health.Status{State: health.Failed, Message: message}
		}
		return progressing(cmp.Or(l.podFailure, message))
	case l.primary() == "" && d.held().Undecided:
		return health.Status{State: health.Failed, Message: d.held().Message}
	case l.cluster.Primary == "":
		return progressing(cmp.Or(d.held().Message, l.podFailure, "No primary has been elected yet"))
	case d.archives() && l.cluster.System == "":
		return progressing("Waiting for the database system identifier")
	case !d.settled || l.cluster.Credentials != l.credentials:
		return progressing("Reconciling databases, users and passwords")
	}
	return health.Status{State: health.Healthy}
}

// judgeServers judges the StatefulSet. It does not use kstatus, which calls a StatefulSet whose
// pods are replaced on deletion current at once.
func (d *cluster) judgeServers(*structpb.Struct) health.Status {
	l, want := d.live, d.replicas()
	st := l.set.Status
	switch {
	case !l.exists:
		return progressing("Not created yet")
	case st.ObservedGeneration != l.set.Metadata.Generation, st.Replicas != want, st.ReadyReplicas != want:
		return progressing(cmp.Or(d.held().Message, d.podFailure(), d.serverProblem(), "Not all pods are ready"))
	case want > d.spec.Size:
		return progressing("Switchover in progress")
	case l.isOutdated():
		return progressing(cmp.Or(d.podFailure(), "Servers are being replaced one at a time"))
	case d.waitsForRestart():
		return progressing("Servers are being restarted one at a time")
	case d.isGrowing():
		return progressing("Volumes are being grown")
	}
	return health.Status{State: health.Healthy}
}

// podFailure returns the reason why a pod does not become ready, as far as it is known, or "".
func (d *cluster) podFailure() string {
	if d.live.set.Status.ReadyReplicas == 0 {
		return d.live.podFailure
	}
	return d.problem(instance.SubjectPod)
}

// serverProblem returns the problem of the first server that reports one of its own, or "".
func (d *cluster) serverProblem() string {
	for i := range int32(maxSize) {
		pod := d.podName(i)
		if m := d.live.members[pod]; m.Message != "" {
			return pod + ": " + m.Message
		}
	}
	return ""
}

// problem returns the message of the first problem of a subject, or "".
func (d *cluster) problem(s instance.Subject) string {
	for _, p := range d.live.cluster.Problems {
		if p.Subject == s {
			return p.Message
		}
	}
	return ""
}

func (d *cluster) waitsForRestart() bool {
	for i := range d.spec.Size {
		if d.live.members[d.podName(i)].Restart {
			return !d.spec.Hibernated
		}
	}
	return false
}

// isGrowing reports whether a volume is smaller than desired and nothing prevents its expansion.
func (d *cluster) isGrowing() bool {
	want, err := resource.ParseQuantity(d.storage)
	if err != nil || d.spec.Hibernated {
		return false
	}
	for i := range d.spec.Size {
		m := d.live.members[d.podName(i)]
		have, err := resource.ParseQuantity(m.Capacity)
		if err == nil && have.Cmp(want) < 0 && m.Volume == "" {
			return true
		}
	}
	return false
}
