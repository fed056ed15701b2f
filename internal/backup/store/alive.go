package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
)

// RunningObject is in a backup's folder while it is being made, and written again
// with every beat. A folder without a manifest whose RunningObject is no longer
// renewed was left by a pod that was killed. Two pods may well be at work for the
// same folder at once: the one that the schedule started and the one that somebody
// asked for, or those of two clusters that were given the same destination.
const RunningObject = "running"

// beat is how often RunningObject is renewed, and a pod is dead that missed three
// of them.
const beat = 15 * time.Second

// Keep says that the backup with the id is being made, until stop is called.
func (s *Store) Keep(ctx context.Context, id string) (stop func(), err error) {
	name := id + "/" + RunningObject
	mark := func() error { return s.Write(ctx, name, []byte("This backup is being made.\n")) }
	if err := mark(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(s.beat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// One that fails is made up for by the next; and if the store is
				// gone, so is the backup.
				_ = mark()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}, nil
}

// RemoveDead removes the unfinished backups that nobody makes any more. The one
// with the id own is being made by the caller. Where a pod was killed a moment ago,
// or another one is at work, it waits for three beats to tell which.
func (s *Store) RemoveDead(ctx context.Context, own string, ids []string) error {
	before, err := s.beats(ctx)
	if err != nil {
		return err
	}
	recent := func(id string) bool {
		last, ok := before[id]
		// By the store's clock, which wrote both.
		return ok && before[own].Sub(last) < 4*s.beat
	}
	if slices.ContainsFunc(ids, recent) {
		timer := time.NewTimer(3 * s.beat)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	// In this order: whoever uploads has said before that it is at work.
	uploads, err := s.unfinished(ctx)
	if err != nil {
		return err
	}
	after, err := s.beats(ctx)
	if err != nil {
		return err
	}

	var errs []error
	alive := map[string]bool{}
	for id, last := range after {
		alive[id] = id == own || !slices.Contains(ids, id) || !last.Equal(before[id])
	}
	for _, id := range ids {
		if id != own && !alive[id] {
			errs = append(errs, s.removeUnfinished(ctx, id))
		}
	}
	// What was removed before may have left uploads that could not be aborted then.
	for id, u := range uploads {
		if !alive[id] {
			errs = append(errs, s.abandon(ctx, u))
		}
	}
	return errors.Join(errs...)
}

// removeUnfinished backup, unless it was finished meanwhile.
func (s *Store) removeUnfinished(ctx context.Context, id string) error {
	sizes, err := s.Sizes(ctx, id)
	if err != nil {
		return err
	}
	if _, finished := sizes[backup.ManifestObject]; finished {
		return nil
	}
	return s.Remove(ctx, id)
}

// beats that were last written, by the ids of the backups.
func (s *Store) beats(ctx context.Context) (map[string]time.Time, error) {
	backups, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]time.Time{}
	for id, objects := range backups {
		if o, ok := objects[RunningObject]; ok {
			out[id] = o.modified
		}
	}
	return out, nil
}
