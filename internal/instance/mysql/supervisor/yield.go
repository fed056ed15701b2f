package supervisor

import (
	"context"
	"fmt"
	"time"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

const (
	// leastRoom is the room on a volume, in bytes, below which it counts as full, and enoughRoom that from which on it
	// does not any more.
	leastRoom  = 64 << 20
	enoughRoom = 2 * leastRoom

	// fullFor is how long a volume has to be full: what fills it may be removed at once.
	fullFor = 3 * time.Second

	// yieldWithin is how long a server may take to leave its group in order: one that waits for room already may not.
	yieldWithin = 4 * time.Second
)

// full reports whether the volume is full.
func (s *Supervisor) full() (bool, error) {
	used, size, err := volume.Usage(s.Files.Volume)
	if err != nil {
		return false, err
	}
	free := size - used
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isFull = free < leastRoom || s.isFull && free < enoughRoom
	return s.isFull, nil
}

// yield has a member whose volume is full leave its group, if others can go on without it, and reports whether it did.
func (s *Supervisor) yield(ctx context.Context, own *group.Report) (bool, error) {
	if !own.Full || s.process == nil {
		s.fullSince = time.Time{}
		return false, nil
	}
	if s.fullSince.IsZero() {
		s.fullSince = time.Now()
	}
	if time.Since(s.fullSince) < fullFor {
		return false, nil
	}
	// The next attempt is as long after this one.
	s.fullSince = time.Now()
	if !group.Yields(own, s.outside.Peers(ctx, s.others(own)...), s.size(ctx, own)) {
		return false, nil
	}
	s.Warn(ctx, appsv1.ReasonVolumeFull, fmt.Sprintf("%s leaves its group, since volume claim %s is full, and joins again once there is room: raise storageSize", s.Pod, instance.VolumeClaim(s.Pod)))
	s.setLeads(false)
	within, cancel := context.WithTimeout(ctx, yieldWithin)
	defer cancel()
	s.give(within)
	// What waits for room would do so until there is some.
	return true, s.process.Kill()
}

// size returns how many servers there have to be.
func (s *Supervisor) size(ctx context.Context, own *group.Report) int {
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	c, err := s.outside.Cluster(ctx)
	if err != nil {
		return len(own.Members)
	}
	return c.Size
}
