package manager

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// How a primary stops whose pod is killed in a moment. The kubelet gives a pod that was
// deleted by force about two seconds; a clean stop takes that long on a slow machine, or
// where a standby is slow to confirm the last of the log. A primary that is killed before
// it has ended cannot say that it has, and the others wait until its lock runs out.
const (
	// cleanWithin is how long it may take to stop cleanly at least.
	cleanWithin = 1200 * time.Millisecond

	// leaveTime is what is kept of a longer grace period for letting go of the lock.
	leaveTime = 1500 * time.Millisecond

	// stopPoll is how often the server is looked at while it stops.
	stopPoll = 20 * time.Millisecond
)

// hurry the primary: it begins to stop now, without archiving, and ends without a last
// checkpoint where that takes too long. Nothing acknowledged is lost by either: it is on
// this volume, and on a standby's where writes are synchronous. grace is what the pod
// has, 0 where it is no more.
func (s *stopper) hurry(ctx context.Context, grace time.Duration) {
	s.log.Info("There is no time to hand over")
	if err := (archive.Config{Socket: s.Socket}).Hurry(); err != nil {
		s.log.Info("Stopping takes longer", "error", err.Error())
	}
	data := filepath.Join(s.Volume, "pgdata")
	if pgdata.Stopped(data) || pgdata.Standby(data) {
		return
	}
	// Patroni stops its server as it does when the kubelet asks it to, which waits for
	// this hook. Only telling the server would have Patroni start it again.
	if err := s.begin(); err != nil {
		s.log.Info("Stopping begins later", "error", err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, max(cleanWithin, grace-leaveTime))
	defer cancel()
	for !pgdata.Stopped(data) {
		if wait(ctx, stopPoll) {
			continue
		}
		s.log.Info("The server does not stop in time: it stops without a last checkpoint")
		if err := pgdata.Signal(data, syscall.SIGQUIT); err != nil && !errors.Is(err, pgdata.ErrStopped) {
			s.log.Info("The server is left to be killed", "error", err.Error())
		}
		return
	}
}

// stopContainer tells the first process of this container to stop, as the kubelet would.
func stopContainer() error { return syscall.Kill(1, syscall.SIGTERM) }
