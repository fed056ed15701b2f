package manager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// leaderlessAfter is how long there may be no leader before a server reports that, and why it does
// not lead itself.
const leaderlessAfter = 3 * memberPeriod

// noLeader reports whether no server has led for leaderlessAfter.
func (b *member) noLeader(ctx context.Context, status *patroni.Status, now time.Time) bool {
	if status == nil || status.Leads() || status.State != patroni.StateRunning {
		b.leaderless = time.Time{}
		return false
	}
	if cluster, err := b.patroni.Cluster(ctx); err != nil || cluster.Leader() != "" {
		b.leaderless = time.Time{}
		return false
	}
	if b.leaderless.IsZero() {
		b.leaderless = now
	}
	return now.Sub(b.leaderless) >= leaderlessAfter
}

// reportNoLeader adds to a report that no server leads, and why this one does not.
func (b *member) reportNoLeader(ctx context.Context, status *patroni.Status, now time.Time, next *instance.Member) {
	last, known := b.LastCluster()
	if !b.noLeader(ctx, status, now) || !known {
		return
	}
	next.Leaderless = last.Reign()
	if held := b.behind(ctx, status, last); held != nil {
		next.Held = held
	}
}

// behind returns why this server does not lead although no server does, or nil: the last primary
// led on a timeline that this server has not replayed. So writes that it acknowledged may be
// missing here, and the timeline that this server would begin may be in the archive as that of
// the other one. Patroni lets no such server lead (check_timeline).
func (b *member) behind(ctx context.Context, status *patroni.Status, last instance.Cluster) *instance.Held {
	// Patroni may have recorded a timeline that no manager has reported yet: it records it at
	// once.
	led := last.Timeline
	if h, err := b.patroni.History(ctx); err == nil && len(h.Ancestors) > 0 {
		led = max(led, h.Ancestors[len(h.Ancestors)-1].Timeline+1)
	}
	if status.Timeline >= led {
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
