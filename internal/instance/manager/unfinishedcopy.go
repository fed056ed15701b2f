package manager

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// resumeAfter is how long a copy that was never finished may stay before it is restarted.
const resumeAfter = memberPeriod

// resume restarts a copy of the primary that was never finished, since the server's pod or its
// container was killed. Patroni 4.0.7 finds a directory that is not empty and has no system
// identifier, suggests in its log to initialize the server again, and does nothing else
// (Ha._run_cycle). When it copies the primary it removes what is there.
func (b *member) resume(ctx context.Context, status *patroni.Status, now time.Time) {
	if status == nil || !status.Empty() || !pgdata.Unfinished(archive.Config{Volume: b.Volume}.DataDir()) {
		b.unfinished = time.Time{}
		return
	}
	if b.unfinished.IsZero() {
		b.unfinished = now
	}
	if now.Sub(b.unfinished) < resumeAfter {
		return
	}
	cluster, err := b.patroni.Cluster(ctx)
	if err != nil || cluster.Leader() == "" {
		return
	}
	b.unfinished = now
	if b.Note("copy the primary again", b.patroni.Reinitialize(ctx)) {
		b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonReplicaReinitializing, b.Pod+" copies the primary again: its last copy was never finished")
	}
}
