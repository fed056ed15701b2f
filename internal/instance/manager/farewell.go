package manager

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

const (
	// farewellWithin is what a pod that is deleted with no grace has left.
	farewellWithin = 1500 * time.Millisecond

	// askWithin is how long one other server may take to answer.
	askWithin = 500 * time.Millisecond

	// ledWithin is how long ago a server may have led that says farewell.
	ledWithin = 30 * time.Second

	// leaderAnnotation of the leader lock, as Patroni writes it.
	leaderAnnotation = "leader"
)

// lead notes that this server leads, and whom it could leave the lock to.
func (m *Manager) lead(members *patroni.Cluster) {
	l := &led{at: time.Now()}
	for _, other := range members.Members {
		if other.Name != m.Pod && other.Host != "" {
			l.others = append(l.others, other.Host)
		}
	}
	m.led.Store(l)
}

// led is when this server led last, beside whom.
type led struct {
	at     time.Time
	others []string
}

// farewell of a pod whose server has ended: as a sidecar the manager outlives it.
// Patroni lets go of the leader lock when it stops. It can not when the pod was
// deleted with no grace: its token ends with its pod's object, and the lock would
// hold up everybody until it runs out. So another server is asked to take it
// away, which is safe since nothing can be written here any more.
func (m *Manager) farewell() {
	l := m.led.Load()
	if l == nil || time.Since(l.at) > ledWithin {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewellWithin)
	defer cancel()
	for !m.over(ctx) {
		if !wait(ctx, pollPeriod) {
			return
		}
	}
	pod, err := m.kube.Self(ctx, m.Pod)
	if err == nil && pod.DeletionTimestamp == nil {
		// Only this container ends: Patroni may be about to start its server
		// again, as the primary.
		return
	}
	if !kube.Unknown(err) {
		err = m.kube.ReleaseLock(ctx, m.leaderName(), leaderAnnotation, m.Pod)
	}
	if !kube.Unknown(err) {
		m.note("let go of the leader lock", ignore(err, kube.ErrHeld))
		return
	}
	for _, host := range l.others {
		each, cancel := context.WithTimeout(ctx, askWithin)
		err := m.sibling(host).Release(each, patroni.Release{Pod: m.Pod})
		cancel()
		if m.note("ask "+host+" to release the leader lock", err) {
			return
		}
	}
}

// over says whether nothing can be written here any more without the lock.
// PostgreSQL has stopped cleanly, and so has removed its file; or Patroni, which
// was not let renew the lock, has made a standby of it, and promotes none without
// the lock; or both were killed.
func (m *Manager) over(ctx context.Context) bool {
	if _, err := os.Stat(filepath.Join(m.Volume, "pgdata", "postmaster.pid")); errors.Is(err, fs.ErrNotExist) {
		return true
	}
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

// refused says whether nobody listens any more.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// serveRelease takes the leader lock away from a server that says that it has
// ended. Who may ask Patroni to move servers may ask for this.
func (m *Manager) serveRelease(w http.ResponseWriter, r *http.Request) {
	user, password, ok := r.BasicAuth()
	if !ok || !m.patroni.Admits(user, password) {
		http.Error(w, "the password of Patroni's API is needed", http.StatusUnauthorized)
		return
	}
	asked := patroni.Release{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked); err != nil || m.ordinal(asked.Pod) < 0 {
		http.Error(w, "cannot read which pod has ended", http.StatusBadRequest)
		return
	}
	err := m.kube.ReleaseLock(r.Context(), m.leaderName(), leaderAnnotation, asked.Pod)
	switch {
	case errors.Is(err, kube.ErrHeld):
		http.Error(w, "another server holds the leader lock, or nobody does", http.StatusConflict)
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
