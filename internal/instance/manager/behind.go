package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// behindAfter is how long there may be no leader before a server says why it does not
// lead itself.
const behindAfter = 3 * memberPeriod

// behind says why this server does not lead while nobody does: the last primary went on
// along a timeline that this server never saw, so what that one acknowledged may be
// missing here, and the timeline that this one would begin may be in the archive as that
// of the other. Patroni lets no such server lead (check_timeline).
func (b *member) behind(ctx context.Context, status *patroni.Status, now time.Time) *instance.Held {
	last, known := b.lastCluster()
	if !known || status == nil || status.Leads() || status.Timeline == 0 || status.Timeline >= last.Timeline {
		b.leaderless = time.Time{}
		return nil
	}
	cluster, err := b.patroni.Cluster(ctx)
	if err != nil || cluster.Leader() != "" {
		b.leaderless = time.Time{}
		return nil
	}
	if b.leaderless.IsZero() {
		b.leaderless = now
	}
	if now.Sub(b.leaderless) < behindAfter {
		return nil
	}
	message := fmt.Sprintf("Waiting for %s to lead again: it led on timeline %d, which %s, on timeline %d, never saw, so that writes would be lost", last.Primary, last.Timeline, b.Pod, status.Timeline)
	if owner := b.owner.Load(); owner != nil {
		message += fmt.Sprintf(". To lead without them, annotate the DatabaseCluster with %s, and delete that volume's pod", annotation(state(string(owner.UID), last.Began)))
	}
	return &instance.Held{Message: message}
}
