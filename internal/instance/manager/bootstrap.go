package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// initializeAnnotation is on Patroni's configuration from when a server begins to
// make the cluster: empty at first, and once that is done the system's identifier.
const initializeAnnotation = "initialize"

// beginAfter is how long nobody may be at work on a cluster that is to be made.
// Whoever is says so with Patroni's next look, after five seconds.
const beginAfter = 3 * memberPeriod

// begin anew where a cluster is said to be under way and nobody makes it. The
// servers race for an annotation, and who wins makes the cluster. An API server
// that is slow to answer may carry out what the winner has given up by then, so
// that it does not know that it has won; or the winner's pod is killed. All would
// wait for a leader for ever. Without the annotation they race again.
//
// The annotation may also be of a cluster that was made. A server of a deleted
// DatabaseCluster writes it while it ends, if the next one of that name is there
// already: no server of this StatefulSet has led, and no volume has data. If one has
// led, the data is gone, and a person decides.
func (b *member) begin(ctx context.Context, status *patroni.Status, now time.Time) {
	if !b.deserted(ctx, status) {
		b.empty, b.lost = time.Time{}, instance.Held{}
		return
	}
	if b.empty.IsZero() {
		b.empty = now
	}
	if now.Sub(b.empty) < beginAfter {
		return
	}
	b.empty = now
	made, err := b.system(ctx)
	if !b.note("read whether the cluster was made", err) {
		return
	}
	if made != "" && !b.neverLed(ctx) {
		return
	}
	err = b.kube.ReleaseLock(ctx, b.configName(), initializeAnnotation, made, time.Time{})
	if !b.note("let servers make the cluster anew", ignore(err, kube.ErrHeld)) || errors.Is(err, kube.ErrHeld) {
		return
	}
	if made == "" {
		b.event(ctx, corev1.EventTypeWarning, appsv1.ReasonBootstrapRetried, "Retrying bootstrap: the server that was initializing the cluster is gone")
		return
	}
	b.event(ctx, corev1.EventTypeWarning, appsv1.ReasonBootstrapRetried, "Retrying bootstrap: Patroni's state is of a deleted DatabaseCluster of this name, and no volume has data")
}

// deserted says whether this server has no data, and no other one does anything.
func (b *member) deserted(ctx context.Context, status *patroni.Status) bool {
	if status == nil || !status.Empty() {
		return false
	}
	cluster, err := b.patroni.Cluster(ctx)
	return err == nil && cluster.Asleep()
}

// neverLed says whether no server of this StatefulSet has led and no volume has data.
// Otherwise b.lost says what is waited for, or that the data is gone.
func (b *member) neverLed(ctx context.Context) bool {
	last, known := b.lastCluster()
	waits, err := b.mayHaveData(ctx)
	if !b.note("look for data on all volumes", err) || !known {
		return false
	}
	b.lost = instance.Held{Message: waits}
	if waits != "" {
		return false
	}
	if last.Primary == "" {
		return true
	}
	b.lost = instance.Held{Undecided: true, Message: fmt.Sprintf(
		"no volume has this cluster's data any more, which %s led: restore a backup under another name (spec.restoreFrom), or delete ConfigMap %s to make the cluster anew without that data", last.Primary, b.configName())}
	return false
}

// mayHaveData says for which volume the cluster waits, or "" where the server of each one
// that exists has no data.
func (b *member) mayHaveData(ctx context.Context) (string, error) {
	claims, err := b.claims(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if name == b.Pod {
			continue
		}
		pod, err := b.kube.Pod(ctx, name)
		switch {
		case kube.Missing(err):
			return fmt.Sprintf("Waiting for volume claim data-%s, which may have this cluster's data, since %s has none: raise size so that its server starts, or delete the volume claim if what is on it is not needed", name, b.Pod), nil
		case err != nil:
			return "", err
		}
		if pod.Status.PodIP != "" {
			status, err := b.remote(patroniOf(pod)).Status(ctx)
			if err == nil && status.Empty() {
				continue
			}
		}
		return fmt.Sprintf("Waiting for %s, which may have this cluster's data, since %s has none", name, b.Pod), nil
	}
	return "", nil
}
