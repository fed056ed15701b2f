package manager

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

const (
	// leaveWithin is how long a pod that is deleted with no grace still runs: the kubelet
	// gives a container that is to end at least 2 s.
	leaveWithin = 1900 * time.Millisecond

	// demotedWithin is how long Patroni may take to demote a primary.
	demotedWithin = 15 * time.Second

	// askWithin bounds one request that only saves time.
	askWithin = 500 * time.Millisecond

	// releaseWithin is how long a server tries to release the lock of another one that has
	// ended.
	releaseWithin = 5 * time.Second

	// ledWithin is how long ago a server may have led and still hold the lock.
	ledWithin = 30 * time.Second

	// leaderAnnotation is the annotation of the leader lock in which Patroni writes the
	// holder.
	leaderAnnotation = "leader"
)

// lead records that this server leads, and which servers could release the lock for it.
func (m *Manager) lead(members *patroni.Cluster) {
	l := &led{at: time.Now()}
	for _, other := range members.Members {
		if other.Name != m.Pod && other.Host != "" {
			l.others = append(l.others, other.Manager(m.apiPort()))
		}
	}
	m.led.Store(l)
	m.keepConnected(l.others)
}

// keepConnected keeps connections to the servers that are asked to release the lock. Once a
// pod's object is removed, no NetworkPolicy selects the pod any more, and the network admits
// no new connection from its address. An existing connection continues.
func (m *Manager) keepConnected(hosts []string) {
	for _, host := range hosts {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), askWithin)
			defer cancel()
			// A server that does not answer now is tried again after the cluster is read next.
			_ = m.sibling(host).Connect(ctx)
		}()
	}
}

// led records when this server led last, and the managers of the servers beside it.
type led struct {
	at     time.Time
	others []string
}

// leave releases the leader lock of a pod that is deleted, once its server has ended. As a
// sidecar the manager outlives the server. Patroni releases the lock when it stops, but cannot
// if the pod was deleted with no grace: the pod's token becomes invalid with the pod's object,
// and all other servers would wait until the lock expires. So the other servers are asked to
// release it, which is safe since nothing can be written here any more.
func (m *Manager) leave(ctx context.Context) (released bool) {
	l := m.led.Load()
	if l == nil || time.Since(l.at) > ledWithin {
		return false
	}
	if !m.over(ctx) {
		return false
	}
	if m.stays(ctx) || !m.release(ctx, l) {
		return false
	}
	m.led.CompareAndSwap(l, nil)
	return true
}

// end releases the lock, and keeps the pod's address for as long as possible. Before one of
// them leads, the other servers send a request to this address too. It refuses the connection
// at once while the pod exists. Once the pod is gone, each of them waits 2 s for an answer.
func (m *Manager) end() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	if m.leave(ctx) {
		<-ctx.Done()
	}
}

// demoted releases the lock of a server that has stopped leading: it may have lost its
// permissions with its pod's object, long before the kubelet ends it.
func (m *Manager) demoted(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, demotedWithin)
	defer cancel()
	m.leave(ctx)
}

// stays reports whether only this container ends: Patroni may then be about to start its
// server again as the primary. If the API server does not answer, the pod counts as ending if
// Patroni no longer listens, since Patroni ends before a sidecar does.
func (m *Manager) stays(ctx context.Context) bool {
	self, cancel := context.WithTimeout(ctx, askWithin)
	pod, err := m.Kube.Self(self, m.Pod)
	cancel()
	switch {
	case err == nil:
		return pod.DeletionTimestamp == nil
	case kube.Unknown(err), kube.Missing(err):
		return false
	}
	self, cancel = context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err = m.patroni.Status(self)
	return !refused(err)
}

// release releases the leader lock, and reports whether it did. It sends all requests that
// could do so at once: this pod's token may be invalid, and any of the other servers may be
// slow or gone.
func (m *Manager) release(ctx context.Context, l *led) bool {
	now := time.Now()
	asks := []func() error{func() error {
		return ignore(m.Kube.ReleaseLock(ctx, instance.LeaderName(m.Scope), leaderAnnotation, m.Pod, now), kube.ErrHeld)
	}}
	for _, host := range l.others {
		asks = append(asks, func() error { return m.sibling(host).Release(ctx, patroni.Release{Pod: m.Pod, At: now}) })
	}
	answers := make(chan error, len(asks))
	for _, ask := range asks {
		go func() { answers <- ask() }()
	}
	var errs []error
	for range asks {
		err := <-answers
		if err == nil {
			return m.Note("release the leader lock", nil)
		}
		errs = append(errs, err)
	}
	return m.Note("release the leader lock", errors.Join(errs...))
}

// over waits until nothing can be written here any more without the lock, and reports whether
// it came to that: PostgreSQL has stopped, was demoted, or was killed.
func (m *Manager) over(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	demoted := make(chan struct{})
	// Patroni may take long to answer while its server stops.
	go func() {
		for !m.harmless(ctx) {
			if !pace.Wait(ctx, pollPeriod) {
				return
			}
		}
		close(demoted)
	}()
	for !pgdata.Stopped(filepath.Join(m.Volume, instance.DataFolder)) {
		select {
		case <-demoted:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(stopPoll):
		}
	}
	return true
}

// harmless reports whether Patroni, which could not renew the lock, has demoted its server,
// and does not promote it again without the lock, or whether both processes were killed.
func (m *Manager) harmless(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	status, err := m.patroni.Status(ctx)
	if err == nil {
		return status.Role == patroni.RoleReplica
	}
	return refused(err) && refused(m.knock(ctx))
}

// knock connects to PostgreSQL's socket.
func (m *Manager) knock(ctx context.Context) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(m.Socket, ".s.PGSQL."+strconv.Itoa(int(m.Port))))
	if err != nil {
		return err
	}
	return c.Close()
}

// refused reports whether an error means that no server listens.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// serveRelease releases the leader lock of a server that reports that it has ended.
func (m *Manager) serveRelease(w http.ResponseWriter, r *http.Request) {
	asked := patroni.Release{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked); err != nil || m.ordinal(asked.Pod) < 0 {
		http.Error(w, "cannot read which pod has ended", http.StatusBadRequest)
		return
	}
	// The pod that sent the request has little time left, and may be gone before the API
	// server answers.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), releaseWithin)
	defer cancel()
	err := m.Kube.ReleaseLock(ctx, instance.LeaderName(m.Scope), leaderAnnotation, asked.Pod, asked.At)
	switch {
	case errors.Is(err, kube.ErrHeld):
		http.Error(w, "another server holds the leader lock, or none does", http.StatusConflict)
	case err != nil:
		http.Error(w, "cannot release the leader lock", http.StatusBadGateway)
	}
	m.Note("release the leader lock of "+asked.Pod, ignore(err, kube.ErrHeld))
}

// ignore returns nil if err is none, which is no error for the caller.
func ignore(err, none error) error {
	if errors.Is(err, none) {
		return nil
	}
	return err
}
