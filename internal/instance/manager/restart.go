package manager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// nudgeAfter is how long a standby that is up may not follow before Patroni is
// made to look again at whom it follows.
const nudgeAfter = memberPeriod

// reviveAfter is how long a standby follows no server until it is restarted, and reviveAgain
// how long after that it is restarted again.
const (
	reviveAfter = time.Minute
	reviveAgain = 10 * time.Minute
)

// nudge Patroni while its server is a standby that is up and does not follow.
// Patroni asks the server whom it follows only when the configuration file is
// newer than the last time. If it asks just after it has written the file, and
// before the server has read it, it takes what was for what is, and never asks
// again: a standby that was told to follow nobody for a moment, because nobody
// led, would wait for ever. A file that is newer has Patroni ask.
func (b *member) nudge(status *patroni.Status, now time.Time) {
	if status == nil || !status.Idle() {
		b.idle = time.Time{}
		return
	}
	if b.idle.IsZero() {
		b.idle, b.nudged = now, now
		return
	}
	if now.Sub(b.nudged) < nudgeAfter {
		return
	}
	b.nudged = now
	b.note("have Patroni look whom its server follows", os.Chtimes(filepath.Join(b.Volume, "pgdata", "postgresql.conf"), now, now))
}

// revive a standby that follows no server although another one leads, where nudging has not
// helped: it is restarted with what Patroni knows of its primary. One that has a primary to
// follow and cannot reach it is left alone: PostgreSQL tries that by itself.
func (b *member) revive(ctx context.Context, now time.Time) {
	if b.idle.IsZero() || now.Sub(b.idle) < reviveAfter || now.Sub(b.revived) < reviveAgain {
		return
	}
	cluster, err := b.patroni.Cluster(ctx)
	if err != nil {
		return
	}
	leader := cluster.Leader()
	if leader == "" || leader == b.Pod {
		return
	}
	if follows, err := b.server.Follows(ctx); err != nil || follows != "" {
		return
	}
	b.revived = now
	waited := now.Sub(b.idle).Round(time.Second)
	if b.note("restart a standby that follows no server", b.patroni.RestartNow(ctx)) {
		b.event(ctx, corev1.EventTypeWarning, appsv1.ReasonReplicaRestarting, fmt.Sprintf("%s is restarted: it has followed no server for %s, and %s leads", b.Pod, waited, leader))
	}
}
