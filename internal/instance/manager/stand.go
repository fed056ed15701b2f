package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// Annotations of Patroni's objects: who may lead by them.
const (
	syncLeaderAnnotation  = "leader"
	syncStandbyAnnotation = "sync_standby"
	failsafeAnnotation    = "failsafe"
)

// stand for leader of a cluster that has run, as the DatabaseCluster's annotation
// decides. Of those that Patroni knows of, failsafe mode lets no other server lead, and
// quorum commit none that they do not vote for. Only a manual failover goes without both
// (Ha.is_healthiest_node of Patroni 4.0.7): Patroni removes it once a server leads. It
// returns why the server does not stand.
func (b *member) stand(ctx context.Context, g *ground) string {
	if b.data == nil || b.data.State != instance.DataWhole || g.system != "" && b.data.System != g.system {
		return "Volume claim " + b.volumeName() + ", which the annotation names, holds no database of this cluster. Remove the annotation, or name another volume claim: " + g.cluster.Annotation
	}
	others, err := b.othersMayLead(ctx)
	if err == nil && others {
		err = b.kube.Annotate(ctx, b.failoverName(), map[string]any{"leader": nil, "member": b.Pod, "scheduled_at": nil})
	}
	if !b.note("ask Patroni for a failover to this server", err) {
		return "Waiting for the API server: " + b.Pod + " is to lead"
	}
	return ""
}

// othersMayLead says whether Patroni's state names other servers than this one.
func (b *member) othersMayLead(ctx context.Context) (bool, error) {
	quorum, err := b.kube.ConfigMap(ctx, b.syncName())
	if err != nil && !kube.Missing(err) {
		return false, err
	}
	lock, err := b.kube.ConfigMap(ctx, b.leaderName())
	if err != nil && !kube.Missing(err) {
		return false, err
	}
	var names []string
	if quorum != nil {
		names = append(strings.Split(quorum.Annotations[syncStandbyAnnotation], ","), quorum.Annotations[syncLeaderAnnotation])
	}
	if lock != nil && lock.Annotations[failsafeAnnotation] != "" {
		failsafe := map[string]string{}
		if err := json.Unmarshal([]byte(lock.Annotations[failsafeAnnotation]), &failsafe); err != nil {
			return false, fmt.Errorf("cannot read the members of failsafe mode: %w", err)
		}
		for name := range failsafe {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if name != "" && name != b.Pod {
			return true, nil
		}
	}
	return false, nil
}
