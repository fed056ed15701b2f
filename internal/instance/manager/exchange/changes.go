package exchange

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
)

// Expand requests more storage for this server's volume claim if it has less than is desired, and
// reports its capacity and what keeps it from expanding. It reports false if the claim is not known.
func (x *Exchange) Expand(ctx context.Context, g *volume.Grower, next *instance.Member) (volume.Growth, bool) {
	_, desired, ok := x.Target()
	claim := x.Claim.One()
	if !ok || claim == nil {
		return volume.Growth{}, false
	}
	if capacity, ok := claim.Status.Capacity[corev1.ResourceStorage]; ok {
		next.Capacity = capacity.String()
	}
	growth, err := g.Grow(ctx, claim, desired.Storage, x.Kube.PatchStorage)
	x.Note("expand the volume", err)
	next.Volume = growth.Message
	if growth.Request && err == nil {
		x.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonVolumeResize, "Expanding the volume of "+x.pod+" to "+desired.Storage)
	}
	return growth, true
}

// Replace deletes a pod, and the StatefulSet's controller creates a new one. The primary's own server
// hands over before it stops.
func (x *Exchange) Replace(ctx context.Context, pod *corev1.Pod, message string) {
	err := x.Kube.DeletePod(ctx, pod)
	if kube.Raced(err) {
		// The pod has changed since it was read. The next pass reads it again.
		return
	}
	if x.Note("replace a pod", err) {
		x.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonRollingUpdate, message)
	}
}

// Obsolete returns the keys of reports of members that no longer exist and are not desired.
func (x *Exchange) Obsolete(servers []roll.Server) []string {
	status := x.Status.One()
	if status == nil {
		return nil
	}
	var keys, pods []string
	for k := range status.Data {
		keys = append(keys, k)
	}
	for _, s := range servers {
		pods = append(pods, s.Pod)
	}
	slices.Sort(keys)
	return report.Obsolete(keys, pods)
}

// reasons are the reasons of events about problems, by their subjects.
var reasons = map[instance.Subject]string{
	instance.SubjectDatabase:  appsv1.ReasonDatabaseReconcileFailed,
	instance.SubjectUser:      appsv1.ReasonRoleReconcileFailed,
	instance.SubjectParameter: appsv1.ReasonParametersRefused,
	instance.SubjectPod:       appsv1.ReasonPodFailing,
	instance.SubjectBackup:    appsv1.ReasonRepositoryNotReady,
}

// Problems creates events about problems that are new.
func (x *Exchange) Problems(ctx context.Context, before, next []instance.Problem) {
	for _, problem := range report.New(before, next) {
		x.Event(ctx, corev1.EventTypeWarning, reasons[problem.Subject], problem.Message)
	}
}
