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

	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

const (
	// leaveWithin is what a pod that is deleted with no grace has left: the kubelet
	// gives a container that is to end 2 s at least.
	leaveWithin = 1900 * time.Millisecond

	// demotedWithin is how long Patroni takes to make a standby of a primary.
	demotedWithin = 15 * time.Second

	// askWithin is how long one answer may take that only saves time.
	askWithin = 500 * time.Millisecond

	// releaseWithin is how long a server tries for another one that has ended.
	releaseWithin = 5 * time.Second

	// ledWithin is how long ago a server may have led that holds the lock still.
	ledWithin = 30 * time.Second

	// leaderAnnotation of the leader lock, as Patroni writes it.
	leaderAnnotation = "leader"
)

// lead notes that this server leads, and whom it could leave the lock to.
func (m *Manager) lead(members *patroni.Cluster) {
	l := &led{at: time.Now()}
	for _, other := range members.Members {
		if other.Name != m.Pod && other.Host != "" {
			l.others = append(l.others, other.Manager(m.apiPort()))
		}
	}
	m.led.Store(l)
	m.keepInTouch(l.others)
}

// keepInTouch with the servers that are asked to release the lock: once a pod's object is
// gone, no NetworkPolicy selects it any more, and the network admits no new connection from
// its address. One that there is goes on.
func (m *Manager) keepInTouch(hosts []string) {
	for _, host := range hosts {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), askWithin)
			defer cancel()
			// Who does not answer now is asked again with the next look.
			_ = m.sibling(host).Knock(ctx)
		}()
	}
}

// led is when this server led last, beside whom.
type led struct {
	at     time.Time
	others []string
}

// leave releases the leader lock of a pod that is deleted, once its server has ended:
// as a sidecar the manager outlives it. Patroni releases the lock when it stops. It
// cannot when the pod was deleted with no grace: its token ends with its pod's object,
// and the lock would hold up all others until it runs out. So the other servers are
// asked to take it away, which is safe since nothing can be written here any more.
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

// end of a pod: it leaves, and stays reachable for as long as it may. The other servers
// ask this address too before one of them leads. It refuses at once while it is there;
// once it is gone, each of them waits 2 s for an answer.
func (m *Manager) end() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	if m.leave(ctx) {
		<-ctx.Done()
	}
}

// demoted is what a server does that led and does not any more: it may have lost its
// rights with its pod, long before the kubelet ends it.
func (m *Manager) demoted(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, demotedWithin)
	defer cancel()
	m.leave(ctx)
}

// stays says whether only this container ends: Patroni may then be about to start its
// server again, as the primary. Where the API server does not answer, a Patroni that is
// gone stands for the pod: it ends before a sidecar does.
func (m *Manager) stays(ctx context.Context) bool {
	self, cancel := context.WithTimeout(ctx, askWithin)
	pod, err := m.kube.Self(self, m.Pod)
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

// release the leader lock, and say whether it is released. All that could do it are
// asked at once: the token of this pod may have ended, and any one of the others may be
// slow, or gone.
func (m *Manager) release(ctx context.Context, l *led) bool {
	now := time.Now()
	asks := []func() error{func() error {
		return ignore(m.kube.ReleaseLock(ctx, m.leaderName(), leaderAnnotation, m.Pod, now), kube.ErrHeld)
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
			return m.note("release the leader lock", nil)
		}
		errs = append(errs, err)
	}
	return m.note("release the leader lock", errors.Join(errs...))
}

// over waits until nothing can be written here any more without the lock, and says
// whether it came to that: PostgreSQL has stopped, or has been demoted, or was killed.
func (m *Manager) over(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	demoted := make(chan struct{})
	// Patroni may take long to answer while its server stops.
	go func() {
		for !m.harmless(ctx) {
			if !wait(ctx, pollPeriod) {
				return
			}
		}
		close(demoted)
	}()
	for !pgdata.Stopped(filepath.Join(m.Volume, "pgdata")) {
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

// harmless says whether Patroni, which was not let renew the lock, has made a standby of
// its server, and promotes none without the lock; or both were killed.
func (m *Manager) harmless(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	status, err := m.patroni.Status(ctx)
	if err == nil {
		return status.Role == patroni.RoleReplica
	}
	return refused(err) && refused(m.knock(ctx))
}

// knock at PostgreSQL's own door.
func (m *Manager) knock(ctx context.Context) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(m.Socket, ".s.PGSQL."+strconv.Itoa(int(m.Port))))
	if err != nil {
		return err
	}
	return c.Close()
}

// refused says whether no server listens any more.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// serveRelease takes the leader lock away from a server that says that it has
// ended.
func (m *Manager) serveRelease(w http.ResponseWriter, r *http.Request) {
	asked := patroni.Release{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked); err != nil || m.ordinal(asked.Pod) < 0 {
		http.Error(w, "cannot read which pod has ended", http.StatusBadRequest)
		return
	}
	// The pod that asks has little time left: it may be gone before the API server answers.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), releaseWithin)
	defer cancel()
	err := m.kube.ReleaseLock(ctx, m.leaderName(), leaderAnnotation, asked.Pod, asked.At)
	switch {
	case errors.Is(err, kube.ErrHeld):
		http.Error(w, "another server holds the leader lock, or none does", http.StatusConflict)
	case err != nil:
		http.Error(w, "cannot release the leader lock", http.StatusBadGateway)
	}
	m.note("release the leader lock of "+asked.Pod, ignore(err, kube.ErrHeld))
}

// ignore an error that is none here.
func ignore(err, none error) error {
	if errors.Is(err, none) {
		return nil
	}
	return err
}
