package manager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// strayFor is how long a standby that is up may not follow before the primary
// looks whether it ever can: the ordinary reasons are over by then.
const strayFor = 30 * time.Second

// reinitialized standbys copy the primary; until then they are left alone.
const againAfter = 10 * time.Minute

// strays are standbys that are up and do not follow.
type strays struct {
	since, copied map[string]time.Time
}

// due are those that have strayed long enough.
func (s *strays) due(v *view, now time.Time) []*corev1.Pod {
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
		if now.Sub(began) >= strayFor {
			out = append(out, pod)
		}
	}
	s.since, s.copied = since, copied
	return out
}

// gather the standbys that can never follow again, since the primary has no more
// what they miss: one whose volume was kept while it was away for long, for
// example. PostgreSQL would ask for it for ever. They copy the primary anew.
func (p *primary) gather(ctx context.Context, v *view) {
	for _, pod := range p.strays.due(v, time.Now()) {
		client := p.remote(pod.Status.PodIP)
		position, err := client.Position(ctx)
		if err != nil || position.Role != patroni.RoleReplica || position.State != patroni.StateRunning {
			// It starts, recovers or copies: there is nothing to be done.
			continue
		}
		wal, err := walFiles(p.Volume)
		if !p.note("look at the WAL", err) {
			return
		}
		missing := lost(wal, position.Timeline, v.timeline, position.Xlog.Replayed)
		if missing == "" {
			continue
		}
		if p.note("have "+pod.Name+" copy the primary", client.Reinitialize(ctx)) {
			p.strays.copied[pod.Name] = time.Now()
			p.event(ctx, corev1.EventTypeWarning, reasonCopying, fmt.Sprintf("%s copies the primary anew: it can not follow, %s is no more", pod.Name, missing))
		}
	}
}

// walFiles of the server with this volume.
func walFiles(volume string) (map[string]bool, error) {
	entries, err := os.ReadDir(filepath.Join(volume, "pgdata", "pg_wal"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the WAL: %w", err)
	}
	files := make(map[string]bool, len(entries))
	for _, e := range entries {
		files[e.Name()] = true
	}
	return files, nil
}

// segmentSize is what initdb gives WAL's files.
const segmentSize = 16 << 20

// lost is what a standby misses that the primary has no more, in words, or "". A
// standby fetches the history of each timeline from its own to the primary's
// (https://www.postgresql.org/docs/current/protocol-replication.html), and the
// WAL from the file on that it has reached.
func lost(files map[string]bool, standby, primary, reached int64) string {
	if standby <= 0 || primary <= 0 || reached <= 0 {
		return ""
	}
	for t := standby + 1; t <= primary; t++ {
		if name := fmt.Sprintf("%08X.history", t); !files[name] {
			return "the history of timeline " + strconv.FormatInt(t, 10)
		}
	}
	segment := fmt.Sprintf("%08X%08X", reached>>32, reached&(1<<32-1)/segmentSize)
	for name := range files {
		if len(name) == 24 && strings.HasSuffix(name, segment) {
			return ""
		}
	}
	return "the WAL from " + fmt.Sprintf("%X/%08X", reached>>32, reached&(1<<32-1))
}
