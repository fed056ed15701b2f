package manager

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

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
func (b *member) begin(ctx context.Context, status *patroni.Status, now time.Time) {
	if status == nil || !status.Empty() {
		b.empty = time.Time{}
		return
	}
	cluster, err := b.patroni.Cluster(ctx)
	if err != nil || !cluster.Asleep() {
		b.empty = time.Time{}
		return
	}
	if b.empty.IsZero() {
		b.empty = now
	}
	if now.Sub(b.empty) < beginAfter {
		return
	}
	b.empty = now
	// A cluster that was made once has an identifier there, and keeps it.
	err = b.kube.ReleaseLock(ctx, b.configName(), initializeAnnotation, "", time.Time{})
	if b.note("let servers make the cluster anew", ignore(err, kube.ErrHeld)) && !errors.Is(err, kube.ErrHeld) {
		b.event(ctx, corev1.EventTypeWarning, reasonBeginning, "Beginning anew: the cluster was said to be under way, and nobody made it")
	}
}
