package manager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// behindAfter is how long there may be no leader before a server reports why it does not lead
// itself.
const behindAfter = 3 * memberPeriod

// behind returns why this server does not lead while no server does, or nil: the last primary
// led on a timeline that this server has not replayed. So writes that it acknowledged may be
// missing here, and the timeline that this server would begin may be in the archive as that of
// the other one. Patroni lets no such server lead (check_timeline).
func (b *member) behind(ctx context.Context, status *patroni.Status, now time.Time) *instance.Held {
	last, known := b.LastCluster()
	if !known || status == nil || status.Leads() || status.State != patroni.StateRunning {
		b.leaderless = time.Time{}
		return nil
	}
	// Patroni may have recorded a timeline that no manager has reported yet: it records it at
	// once.
	led := last.Timeline
	if h, err := b.patroni.History(ctx); err == nil && len(h.Ancestors) > 0 {
		led = max(led, h.Ancestors[len(h.Ancestors)-1].Timeline+1)
	}
	cluster, err := b.patroni.Cluster(ctx)
	if err != nil || cluster.Leader() != "" || status.Timeline >= led {
		b.leaderless = time.Time{}
		return nil
	}
	if b.leaderless.IsZero() {
		b.leaderless = now
	}
	if now.Sub(b.leaderless) < behindAfter {
		return nil
	}
	is := fmt.Sprintf("%s, on timeline %d,", b.Pod, status.Timeline)
	if status.Timeline == 0 {
		is = b.Pod
	}
	message := fmt.Sprintf("Waiting for %s to lead again: the cluster was on timeline %d, which %s has not replayed, so that writes would be lost", cmp.Or(last.Primary, "another server"), led, is)
	if uid := b.OwnerUID(); uid != "" {
		message += fmt.Sprintf(". To lead without them, annotate the DatabaseCluster with %s, and delete that volume's pod", instance.LeadWithAdvice(instance.LeadState(uid, last.Began)))
	}
	return &instance.Held{Message: message}
}
