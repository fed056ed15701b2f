package manager

import (
	"context"

	"github.com/storeplane/storeplane/internal/instance"
)

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
	err := b.kube.Annotate(ctx, b.failoverName(), map[string]any{"leader": nil, "member": b.Pod, "scheduled_at": nil})
	if !b.note("ask Patroni for a failover to this server", err) {
		return "Waiting for the API server: " + b.Pod + " is to lead"
	}
	return ""
}
