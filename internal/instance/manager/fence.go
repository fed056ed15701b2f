package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// A primary that was frozen, or cut off from the API server, may go on in the moment in
// which another server takes its lock. What it writes then is acknowledged as soon as a
// standby that still follows it has received that: after Patroni has compared the
// standbys, since a vote does not keep who votes from receiving more. So the server that
// has the lock has all others receive nothing more before it is promoted, and leaves it to
// one that has received more than itself.
const (
	// fenceWithin is how long all of that may take. A standby that has not answered by
	// then is left out: it cannot hold up the only server that can lead.
	fenceWithin = 1500 * time.Millisecond

	// catchUpWithin is how long the server may take to receive what another one has.
	catchUpWithin = 500 * time.Millisecond

	// guardFor is how long a standby is looked after that receives nothing more: Patroni
	// may not have heard of the new leader when it sees to whom the standby follows.
	guardFor  = 3 * time.Second
	guardPoll = 50 * time.Millisecond
)

// errBehind is of a server that must not lead.
var errBehind = errors.New("another standby has received more of the log")

// fencer is the hook that runs before a server is promoted.
type fencer struct {
	pod     string
	port    string
	log     *slog.Logger
	patroni *patroni.Client

	// sibling is the manager of another server, by its base URL.
	sibling func(base string) *patroni.Client
	server  interface {
		Received(ctx context.Context) (int64, error)
	}
}

// Fence off whom the other servers follow, before this one is promoted. It fails only if
// another one has received more: whatever else cannot be done is logged and left.
func Fence(ctx context.Context, c Config, log *slog.Logger) error {
	access := c.access()
	f := &fencer{pod: c.Pod, port: c.apiPort(), log: log, patroni: patroni.At(c.Patroni, access), sibling: clients(access), server: c.server()}
	return f.fence(ctx)
}

func (f *fencer) fence(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fenceWithin)
	defer cancel()
	members, err := f.patroni.Cluster(ctx)
	if err != nil {
		f.log.Info("Cannot ask for the other servers", "error", err.Error())
		return nil
	}
	type answer struct {
		pod      string
		received int64
		err      error
	}
	answers := make(chan answer, len(members.Members))
	asked := 0
	for _, other := range members.Members {
		// Only one that follows the old primary acknowledges what that writes.
		if other.Name == f.pod || other.Host == "" || other.State != patroni.StateStreaming {
			continue
		}
		asked++
		go func() {
			received, err := f.sibling(other.Manager(f.port)).Fence(ctx, f.pod)
			answers <- answer{pod: other.Name, received: received, err: err}
		}()
	}
	// What this server has received only grows: it is asked at the same time.
	own := make(chan int64, 1)
	go func() {
		// Where it cannot say, it is asked again.
		received, _ := f.server.Received(ctx)
		own <- received
	}()
	most := answer{}
	for range asked {
		a := <-answers
		if a.err != nil {
			f.log.Info("A standby does not say that it receives nothing more", "pod", a.pod, "error", a.err.Error())
			continue
		}
		if a.received > most.received {
			most = a
		}
	}
	if most.received == 0 {
		return nil
	}
	has := <-own
	if has >= most.received {
		return nil
	}
	return f.catchUp(context.WithoutCancel(ctx), has, most.pod, most.received)
}

// catchUp with what another standby has received: the old primary may still send it. The
// server has said before how much it has itself, or 0.
func (f *fencer) catchUp(ctx context.Context, has int64, pod string, received int64) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	lacks := func(own int64) error {
		return fmt.Errorf("cannot lead: %w: %s has it up to %d, and %s up to %d", errBehind, pod, received, f.pod, own)
	}
	behind := error(nil)
	if has > 0 {
		behind = lacks(has)
	}
	for {
		own, err := f.server.Received(ctx)
		switch {
		case err == nil && own >= received:
			return nil
		case err == nil:
			behind = lacks(own)
		case behind == nil:
			f.log.Info("Cannot compare the log with that of another standby", "pod", pod, "error", err.Error())
			return nil
		}
		if !wait(ctx, stopPoll) {
			return behind
		}
	}
}

// serveFence has this standby receive nothing more, for a server that is to lead.
func (m *Manager) serveFence(w http.ResponseWriter, r *http.Request) {
	asked := patroni.Fence{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked); err != nil || m.ordinal(asked.By) < 0 {
		http.Error(w, "cannot read which pod is to lead", http.StatusBadRequest)
		return
	}
	// Where the one that asks is gone meanwhile, nothing is half done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), fenceWithin)
	defer cancel()
	fenced, err := m.server.Fence(ctx)
	m.note("receive nothing more from "+asked.By+"'s predecessor", err)
	switch {
	case errors.Is(err, postgres.ErrNotStandby):
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case err != nil:
		http.Error(w, "cannot stop receiving", http.StatusBadGateway)
		return
	}
	// Pods reach each other by their own addresses.
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	go m.guard(context.WithoutCancel(r.Context()), asked.By, host)
	_ = json.NewEncoder(w).Encode(patroni.Fenced{Received: fenced.Received})
}

// guard that this standby follows nobody but the server that is to lead, at its host, or
// one that has taken the lock instead. Patroni removes the fence at its next turn: it may
// not have heard by then of who is to lead, and have the standby follow the old primary
// again; or it has had its turn before the fence, and the next one is seconds away. A
// standby that is told to follow who is to lead is let go at once.
func (m *Manager) guard(ctx context.Context, by, host string) {
	ctx, cancel := context.WithTimeout(ctx, guardFor)
	defer cancel()
	for wait(ctx, guardPoll) {
		now, err := m.server.Follows(ctx)
		switch {
		case err != nil:
		case now == "":
			if told, err := m.server.Told(ctx); err == nil && isTo(told, host) {
				m.note("follow "+by, m.server.Unfence(ctx))
				return
			}
		case isTo(now, host), m.leadsInstead(ctx, now, by):
			return
		default:
			_, err = m.server.Fence(ctx)
			m.note("receive nothing more again", ignore(err, postgres.ErrNotStandby))
		}
	}
}

// isTo says whether a connection is to a host.
func isTo(conninfo, host string) bool {
	return host != "" && slices.Contains(strings.Fields(conninfo), "host="+host)
}

// leadsInstead says whether a connection is to a server that has the lock after all, and
// not the one that was to lead. What Patroni knows of the lock may be old: the API server
// is asked.
func (m *Manager) leadsInstead(ctx context.Context, conninfo, by string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	lock, err := m.kube.ConfigMap(ctx, m.leaderName())
	if err != nil || lock.Annotations[leaderAnnotation] == by {
		return false
	}
	members, err := m.patroni.Cluster(ctx)
	if err != nil {
		return false
	}
	leader := members.Member(lock.Annotations[leaderAnnotation])
	return leader != nil && isTo(conninfo, leader.Host)
}
