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

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// A primary that was frozen, or is cut off from the API server, may still run in the moment in
// which another server takes its lock. What it writes then is acknowledged as soon as a
// standby that still follows it has received that. This may be after Patroni has compared the
// standbys, since a vote does not keep the voter from receiving more. So before the server
// that has the lock is promoted, it has all other standbys stop receiving, and does not lead
// if one of them has received more than itself.
const (
	// fenceWithin is how long all of this may take. A standby that has not answered by then is
	// left out: it must not block the only server that can lead.
	fenceWithin = 1500 * time.Millisecond

	// catchUpWithin is how long the server may take to receive what another standby has.
	catchUpWithin = 500 * time.Millisecond

	// guardFor is how long a fenced standby is guarded, and guardPoll how often it is checked:
	// Patroni may not have read the new leader yet when it sets the server that the standby
	// follows.
	guardFor  = 3 * time.Second
	guardPoll = 50 * time.Millisecond
)

// errBehind is the error for a server that must not lead.
var errBehind = errors.New("another standby has received more of the log")

// fencer is the hook that runs before a server is promoted.
type fencer struct {
	pod     string
	port    string
	log     *slog.Logger
	patroni *patroni.Client

	// sibling returns a client of another server's manager, by its base URL.
	sibling func(base string) *patroni.Client
	server  interface {
		Received(ctx context.Context) (int64, error)
	}
}

// Fence fences off the old primary before this server is promoted: it has the other standbys
// stop receiving WAL. It returns an error only if another standby has received more than this
// one. All other failures are logged and ignored.
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
		// Only a standby that streams from the old primary acknowledges its writes.
		if other.Name == f.pod || other.Host == "" || other.State != patroni.StateStreaming {
			continue
		}
		asked++
		go func() {
			received, err := f.sibling(other.Manager(f.port)).Fence(ctx, f.pod)
			answers <- answer{pod: other.Name, received: received, err: err}
		}()
	}
	// The WAL that this server has received only grows, so it is read at the same time.
	own := make(chan int64, 1)
	go func() {
		// After an error it is read again in catchUp.
		received, _ := f.server.Received(ctx)
		own <- received
	}()
	most := answer{}
	for range asked {
		a := <-answers
		if a.err != nil {
			f.log.Info("A standby does not report that it receives nothing more", "pod", a.pod, "error", a.err.Error())
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

// catchUp waits until this server has received what another standby has, which the old primary
// may still send, and returns an error if it does not. has is how far this server had received
// before, or 0 if that is not known.
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
		if !pace.Wait(ctx, stopPoll) {
			return behind
		}
	}
}

// serveFence has this standby stop receiving WAL, as requested by a server that is to lead.
func (m *Manager) serveFence(w http.ResponseWriter, r *http.Request) {
	asked := patroni.Fence{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked); err != nil || m.ordinal(asked.By) < 0 {
		http.Error(w, "cannot read which pod is to lead", http.StatusBadRequest)
		return
	}
	// The request is completed also if the server that sent it is gone meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), fenceWithin)
	defer cancel()
	fenced, err := m.server.Fence(ctx)
	m.Note("receive nothing more from "+asked.By+"'s predecessor", err)
	switch {
	case errors.Is(err, postgres.ErrNotStandby):
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case err != nil:
		http.Error(w, "cannot stop receiving", http.StatusBadGateway)
		return
	}
	// Pods reach each other by their own addresses, so this is the address of the new leader.
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	go m.guard(context.WithoutCancel(r.Context()), asked.By, host)
	_ = json.NewEncoder(w).Encode(patroni.Fenced{Received: fenced.Received}) //nolint:errchkjson // the client that asked is gone then
}

// guard makes sure that this standby follows only the server that is to lead, at its host, or
// one that has taken the lock instead. Patroni removes the fence in its next loop, and if it
// has not read the new leader by then, the standby follows the old primary again. Or its loop
// has run just before the fence, and the next one is seconds away: then guard removes the
// fence once the standby is configured to follow the new leader.
func (m *Manager) guard(ctx context.Context, by, host string) {
	ctx, cancel := context.WithTimeout(ctx, guardFor)
	defer cancel()
	for pace.Wait(ctx, guardPoll) {
		now, err := m.server.Follows(ctx)
		switch {
		case err != nil:
		case now == "":
			if configured, err := m.server.Configured(ctx); err == nil && isTo(configured, host) {
				m.Note("follow "+by, m.server.Unfence(ctx))
				return
			}
		case isTo(now, host), m.leadsInstead(ctx, now, by):
			return
		default:
			_, err = m.server.Fence(ctx)
			m.Note("receive nothing more again", ignore(err, postgres.ErrNotStandby))
		}
	}
}

// isTo reports whether a connection string contains a host.
func isTo(conninfo, host string) bool {
	return host != "" && slices.Contains(strings.Fields(conninfo), "host="+host)
}

// leadsInstead reports whether a connection is to a server that has the lock, other than the
// one that was to lead. Patroni's copy of the lock may be old, so it is read from the API
// server.
func (m *Manager) leadsInstead(ctx context.Context, conninfo, by string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	lock, err := m.Kube.ConfigMap(ctx, instance.LeaderName(m.Scope))
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
