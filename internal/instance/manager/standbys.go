package manager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// detachedFor is how long a running standby may not follow before the primary checks whether it
// ever can: ordinary causes have passed by then.
const detachedFor = 30 * time.Second

// againAfter is how long a standby is left alone after it was reinitialized: it copies the
// primary.
const againAfter = 10 * time.Minute

// detached are standbys that run and do not follow.
type detached struct {
	since, copied map[string]time.Time

	// reached is how far each had replayed the WAL when it was last checked.
	reached map[string]reached
}

// reached is a position, and when a standby was first seen at it.
type reached struct {
	position int64
	at       time.Time
}

// stillFor is how long a standby must not replay anything before it counts as having no more
// WAL of its own. A conflict that holds up replay for longer is ended by
// max_standby_streaming_delay, unless a user has paused the replay.
const stillFor = time.Minute

// moves reports whether a standby has replayed something within stillFor: it has WAL of its
// own, and requests what it lacks when that ends.
func (s *detached) moves(pod string, position int64, now time.Time) bool {
	before, known := s.reached[pod]
	if known && before.position == position {
		return now.Sub(before.at) < stillFor
	}
	if s.reached == nil {
		s.reached = map[string]reached{}
	}
	s.reached[pod] = reached{position: position, at: now}
	return true
}

// replayFor is how long a standby that follows no server replays nothing of what it has
// received before that counts as impossible to replay. One record may take long, such as one
// that copies a database.
const replayFor = 5 * time.Minute

// obstacle returns why a standby can never follow its primary again, or "". Either the primary
// no longer has what the standby requests, or the standby's own WAL ends differently from the
// primary's, which PostgreSQL finds invalid each second. A standby whose replay is paused is
// left alone: it may have all that is left from before a mistake. A standby that has received
// more than it has replayed requests nothing from before the end of what it has received.
func (s *detached) obstacle(pod string, at *patroni.Position, wal *serverLog, now time.Time) string {
	if s.moves(pod, at.Xlog.Replayed, now) || at.Xlog.Paused {
		return ""
	}
	if lost := wal.lost(at.Timeline, max(at.Xlog.Received, at.Xlog.Replayed)); lost != "" {
		return lost + " is no more"
	}
	if at.Xlog.Received > at.Xlog.Replayed && now.Sub(s.reached[pod].at) >= replayFor {
		return "the WAL that it has received cannot be replayed from " + position(at.Xlog.Replayed)
	}
	return ""
}

// position formats a position in the WAL as PostgreSQL prints it.
func position(at int64) string { return fmt.Sprintf("%X/%08X", at>>32, at&(1<<32-1)) }

// due returns the standbys that have not followed for detachedFor.
func (s *detached) due(v *view, now time.Time) []*corev1.Pod {
	since, copied := map[string]time.Time{}, map[string]time.Time{}
	var out []*corev1.Pod
	for _, server := range v.cluster.Servers {
		pod := v.pod(server.Pod)
		if pod == nil || server.Deleting || server.Streaming || server.Pod == v.cluster.Primary || pod.Status.PodIP == "" {
			continue
		}
		began, known := s.since[server.Pod]
		if !known {
			began = now
		}
		since[server.Pod] = began
		if last, ok := s.copied[server.Pod]; ok && now.Sub(last) < againAfter {
			copied[server.Pod] = last
			continue
		}
		if now.Sub(began) >= detachedFor {
			out = append(out, pod)
		}
	}
	s.since, s.copied = since, copied
	return out
}

// reinitialize reinitializes the standbys that can never follow again, for example one whose
// retained volume is too old. They copy the primary.
func (p *primary) reinitialize(ctx context.Context, v *view) {
	for _, pod := range p.detached.due(v, time.Now()) {
		client := p.remote(patroniOf(pod))
		at, err := client.Position(ctx)
		if err != nil || at.Role != patroni.RoleReplica || at.State != patroni.StateRunning {
			// The server starts, recovers or copies, so there is nothing to do.
			continue
		}
		wal, err := readLog(p.Volume, v.timeline)
		if !p.Note("read the WAL", err) {
			return
		}
		obstacle := p.detached.obstacle(pod.Name, at, wal, time.Now())
		if obstacle == "" {
			continue
		}
		if p.Note("have "+pod.Name+" copy the primary", client.Reinitialize(ctx)) {
			p.detached.copied[pod.Name] = time.Now()
			p.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonReplicaReinitializing, fmt.Sprintf("%s copies the primary again: it cannot follow, %s", pod.Name, obstacle))
		}
	}
}

// serverLog is the WAL that a primary has.
type serverLog struct {
	timeline int64

	// ancestors are those of the timeline, oldest first.
	ancestors []instance.Ancestor

	// files are the names of the files in pg_wal.
	files map[string]bool
}

// readLog reads what WAL the primary with this volume has.
func readLog(volume string, timeline int64) (*serverLog, error) {
	dir := filepath.Join(volume, instance.DataFolder, "pg_wal")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the WAL: %w", err)
	}
	l := &serverLog{timeline: timeline, files: make(map[string]bool, len(entries))}
	for _, e := range entries {
		l.files[e.Name()] = true
	}
	if timeline > 1 && l.files[historyOf(timeline)] {
		l.ancestors, err = pgdata.History(dir, timeline)
	}
	return l, err
}

func historyOf(timeline int64) string { return fmt.Sprintf("%08X.history", timeline) }

// segmentSize is the size of WAL files that initdb sets.
const segmentSize = 16 << 20

// lost returns what a standby needs and the primary no longer has, or "". A standby fetches
// the history of each timeline from its own to the primary's
// (https://www.postgresql.org/docs/current/protocol-replication.html), and the WAL from the
// file on that it has reached.
func (l *serverLog) lost(timeline, reached int64) string {
	if timeline <= 0 || l.timeline <= 0 || reached <= 0 {
		return ""
	}
	for t := timeline + 1; t <= l.timeline; t++ {
		if !l.files[historyOf(t)] {
			return "the history of timeline " + strconv.FormatInt(t, 10)
		}
	}
	if l.files[l.sends(reached)] {
		return ""
	}
	return "the WAL from " + position(reached)
}

// sends returns the name of the file from which the primary sends a position: the file of the
// timeline that the position is on, or, if that timeline ends in the same file, that of the
// next timeline (WalSndSegmentOpen in
// https://github.com/postgres/postgres/blob/REL_17_STABLE/src/backend/replication/walsender.c).
// If the next timeline ends in the same file as well, its file was renamed to .partial: the
// primary has what the standby needs in the file of a later timeline, but does not send from
// there.
func (l *serverLog) sends(position int64) string {
	timeline, segment := l.timeline, position/segmentSize
	for i, a := range l.ancestors {
		end := int64(a.End) //nolint:gosec // WAL positions fit
		if position >= end {
			continue
		}
		timeline = a.Timeline
		if end/segmentSize == segment {
			timeline = l.timeline
			if i+1 < len(l.ancestors) {
				timeline = l.ancestors[i+1].Timeline
			}
		}
		break
	}
	const perID = 1 << 32 / segmentSize
	return fmt.Sprintf("%08X%08X%08X", timeline, segment/perID, segment%perID)
}
