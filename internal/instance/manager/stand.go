package manager

import (
	"context"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// candidateAnnotation of Patroni's ConfigMap for failovers names the server that is to lead.
const candidateAnnotation = "member"

// stand for leader of a cluster that has run, as the DatabaseCluster's annotation
// decides. Of those that Patroni knows of, failsafe mode lets no other server lead, quorum
// commit none that they do not vote for, and check_timeline none that never saw the last
// primary's timeline. Only a manual failover goes without them (Ha.is_healthiest_node of
// Patroni 4.0.7): Patroni removes it once a server leads. It returns why the server does
// not stand.
func (b *member) stand(ctx context.Context, g *ground) string {
	if b.data == nil || b.data.State != instance.DataWhole || g.system != "" && b.data.System != g.system {
		return "Volume claim " + b.volumeName() + ", which the annotation names, holds no database of this cluster. Remove the annotation, or name another volume claim: " + g.cluster.Annotation
	}
	err := b.kube.Annotate(ctx, b.failoverName(), map[string]any{"leader": nil, candidateAnnotation: b.Pod, "scheduled_at": nil})
	if !b.note("ask Patroni for a failover to this server", err) {
		return "Waiting for the API server: " + b.Pod + " is to lead"
	}
	return ""
}

// resign withdraws what stand asked for: Patroni keeps to it until a server leads, though the
// annotation is gone or names another volume meanwhile. Switchovers name who leads, or a time, and are
// not this program's.
func (b *member) resign(ctx context.Context) error {
	failover, err := b.kube.ConfigMap(ctx, b.failoverName())
	if kube.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	a := failover.Annotations
	if a[candidateAnnotation] != b.Pod || a["leader"] != "" || a["scheduled_at"] != "" {
		return nil
	}
	return ignore(b.kube.ReleaseLock(ctx, b.failoverName(), candidateAnnotation, b.Pod, time.Time{}), kube.ErrHeld)
}
