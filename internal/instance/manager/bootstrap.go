package manager

import (
	"context"
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

// initializeAnnotation is on Patroni's configuration from when a server begins to initialize
// the cluster. It is empty at first, and contains the system identifier once that is done.
const initializeAnnotation = "initialize"

// retryBootstrapAfter is how long no server may be at work on a cluster without data before its
// bootstrap is retried. A server that is at work shows that at Patroni's next loop, after five
// seconds.
const retryBootstrapAfter = 3 * memberPeriod

// retryBootstrap retries the bootstrap of a cluster that is marked as being initialized while no
// server initializes it. The servers race for an annotation, and the one that sets it initializes
// the cluster. A slow API server may carry out a request that the winner has given up by then, so
// that the winner does not notice that it has won; or the winner's pod is killed. Then all servers
// would wait for a leader for ever. Without the annotation they race again.
//
// The annotation may also be from a cluster that was initialized. A server of a deleted
// DatabaseCluster writes it while it ends, if the next one of that name exists already: no
// server of this StatefulSet has led, and no volume has data. If one has led, the data is
// gone, and a user has to decide.
//
// Each manager counts for itself, and the annotation of every server that begins is empty. So
// only an annotation is removed that was there, unchanged, all the time: if another manager
// has removed it meanwhile, it is of a server that has just won the race and may not have shown
// yet that it is at work. Then a second server would initialize the cluster, and the data of one
// of them would be lost. The resource version shows any change, also one of something else, which
// delays the retry. That does not last: while the annotation is set and no server is at work,
// Patroni changes nothing in this ConfigMap, and Crossplane only the dynamic configuration, if a
// user changes what it depends on.
func (b *member) retryBootstrap(ctx context.Context, status *patroni.Status, now time.Time) {
	if !b.deserted(ctx, status) {
		b.empty, b.marked, b.lost = time.Time{}, "", instance.Held{}
		return
	}
	if !b.empty.IsZero() && now.Sub(b.empty) < retryBootstrapAfter {
		return
	}
	config, err := b.Kube.ConfigMap(ctx, instance.ConfigName(b.Scope))
	if !b.Note("read whether the cluster was made", err) {
		return
	}
	same := b.marked == config.ResourceVersion
	b.empty, b.marked = now, config.ResourceVersion
	made, ok := config.Annotations[initializeAnnotation]
	if !same || !ok || made != "" && !b.neverLed(ctx) {
		return
	}
	err = b.Kube.Remove(ctx, config, initializeAnnotation)
	if kube.Raced(err) || !b.Note("let servers create the cluster again", err) {
		return
	}
	if made == "" {
		b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonBootstrapRetried, "Retrying bootstrap: the server that was initializing the cluster is gone")
		return
	}
	b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonBootstrapRetried, "Retrying bootstrap: Patroni's state is of a deleted DatabaseCluster of this name, and no volume has data")
}

// deserted reports whether this server has no data and no other server is at work.
func (b *member) deserted(ctx context.Context, status *patroni.Status) bool {
	if status == nil || !status.Empty() {
		return false
	}
	cluster, err := b.patroni.Cluster(ctx)
	return err == nil && cluster.Asleep()
}

// neverLed reports whether no server of this StatefulSet has led and no volume has data.
// Otherwise b.lost is what the server waits for, or that the data is gone.
func (b *member) neverLed(ctx context.Context) bool {
	last, known := b.LastCluster()
	waits, err := b.mayHaveData(ctx)
	if !b.Note("search all volumes for data", err) || !known {
		return false
	}
	b.lost = instance.Held{Message: waits}
	if waits != "" {
		return false
	}
	if last.Primary == "" {
		return true
	}
	again := "delete ConfigMap " + instance.ConfigName(b.Scope) + " to create the cluster again without that data"
	if last.Restored() {
		// What it was restored with has been removed since, so that it could not begin.
		again = "delete this DatabaseCluster and apply it again, which restores its source once more"
	}
	b.lost = instance.Held{Undecided: true, Message: fmt.Sprintf(
		"no volume has this cluster's data any more, which %s led: restore a backup under another name (spec.restoreFrom), or %s", last.Primary, again)}
	return false
}

// mayHaveData returns a message about the volume that the cluster waits for, or "" if the
// servers of all volumes have reported that they have no data.
func (b *member) mayHaveData(ctx context.Context) (string, error) {
	claims, err := b.claims(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if name == b.Pod {
			continue
		}
		pod, err := b.Kube.Pod(ctx, name)
		switch {
		case kube.Missing(err):
			return fmt.Sprintf("Waiting for volume claim %s, which may have this cluster's data, since %s has none: raise size so that its server starts, or delete the volume claim if what is on it is not needed", instance.VolumeClaim(name), b.Pod), nil
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
