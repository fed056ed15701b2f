package manager

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// Bounds for stopping a primary whose pod is about to be killed. The kubelet gives a pod that
// was deleted by force about two seconds. A clean stop takes that long on a slow machine, or
// where a standby is slow to confirm the last WAL. A primary that is killed before it has
// ended cannot release its lock, and the others wait until the lock expires.
const (
	// cleanWithin is how long a clean stop may take at least.
	cleanWithin = 1200 * time.Millisecond

	// leaveTime is how much of a longer grace period is reserved for releasing the lock.
	leaveTime = 1500 * time.Millisecond

	// stopPoll is how often the server is checked while it stops.
	stopPoll = 20 * time.Millisecond
)

// hurry stops the primary now, without archiving, and without a last checkpoint if that takes
// too long. Neither loses an acknowledged write: it is on this volume, and on a standby's if
// writes are synchronous. grace is the pod's grace period, or 0 if the pod no longer exists.
func (s *stopper) hurry(ctx context.Context, grace time.Duration) {
	s.log.Info("There is no time to hand over")
	if err := (archive.Config{Socket: s.Socket}).Hurry(); err != nil {
		s.log.Info("Stopping takes longer", "error", err.Error())
	}
	data := filepath.Join(s.Volume, instance.DataFolder)
	if pgdata.Stopped(data) || pgdata.Standby(data) {
		return
	}
	// Patroni is stopped, as by the kubelet's signal, which comes only after this hook, and
	// stops its server. If only the server were stopped, Patroni would start it again.
	if err := s.begin(); err != nil {
		s.log.Info("Stopping begins later", "error", err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, max(cleanWithin, grace-leaveTime))
	defer cancel()
	for !pgdata.Stopped(data) {
		if pace.Wait(ctx, stopPoll) {
			continue
		}
		s.log.Info("The server does not stop in time: it stops without a last checkpoint")
		if err := pgdata.Signal(data, syscall.SIGQUIT); err != nil && !errors.Is(err, pgdata.ErrStopped) {
			s.log.Info("The server is left to be killed", "error", err.Error())
		}
		return
	}
}

// stopContainer sends the first process of this container the signal to stop, as the kubelet
// would.
func stopContainer() error { return syscall.Kill(1, syscall.SIGTERM) }
