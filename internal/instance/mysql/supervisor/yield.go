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

	// agreeWithin is how long the other servers may take to agree on a primary, and startAnyway after what time a server
	// that waits for room is started all the same.
	agreeWithin = 30 * time.Second
	startAnyway = 10 * time.Minute
)

// full reports whether the volume is full.
func (s *Supervisor) full() (bool, error) {
	free, err := s.free(s.Files.Volume)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isFull = free < leastRoom || s.isFull && free < enoughRoom
	return s.isFull, nil
}

// freeOf returns how many bytes a volume has left.
func freeOf(dir string) (uint64, error) {
	used, size, err := volume.Usage(dir)
	return size - used, err
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
	if !group.Yields(own, s.outside.Peers(ctx, s.others(own)...)) {
		return false, nil
	}
	s.log.Info("Leaving the group, since the volume is full")
	s.setLeads(false)
	s.yielded, s.roomless = time.Now(), true
	within, cancel := context.WithTimeout(ctx, yieldWithin)
	defer cancel()
	s.give(within)
	// What waits for room would do so until there is some.
	if err := s.process.Kill(); err != nil {
		return true, err
	}
	select {
	case <-s.process.Done():
	case <-time.After(yieldWithin):
		return true, fmt.Errorf("cannot end MySQL, whose volume is full: it runs %s after it was killed", yieldWithin)
	}
	err := s.Files.DropTemporary()
	// The API server may not answer, and other servers serve by now.
	warned, stop := context.WithTimeout(ctx, outsideWithin)
	defer stop()
	s.Warn(warned, appsv1.ReasonVolumeFull, fmt.Sprintf("%s has left its group, since volume claim %s is full, and joins again once there is room: raise storageSize", s.Pod, instance.VolumeClaim(s.Pod)))
	return true, err
}

// waitsForRoom reports whether the server is not started, since its volume is full and it is not needed: its start would
// wait for room, for a minute each time, also once there is some. From time to time it is, since a start may remove what
// an interrupted statement has left.
func (s *Supervisor) waitsForRoom() (bool, error) {
	full, err := s.full()
	return full && s.roomless && time.Since(s.failed) < startAnyway, err
}

// spare notes whether the server waits for room while others serve. Those that have just lost it agree on a primary
// first.
func (s *Supervisor) spare(own *group.Report, action *group.Action) {
	s.roomless = action.Full || own.Full && time.Since(s.yielded) < agreeWithin
}
