package store

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
)

// RunningObject is in a backup's folder while the backup is running, and is written again with
// every beat. A folder without a manifest whose RunningObject is no longer renewed was left by a
// pod that was killed. Two pods may well write below the same folder at once: one that the
// schedule started and one that a user requested, or those of two clusters with the same
// destination.
const RunningObject = "running"

// readingPrefix begins the name of an object in a backup's folder while a pod reads the backup. Each
// pod has its own, and renews it with every beat.
const readingPrefix = "reading-"

// beat is how often these objects are renewed. A pod that missed three beats is dead.
const beat = 15 * time.Second

// Keep renews the RunningObject of the backup with the id until stop is called.
func (s *Store) Keep(ctx context.Context, id string) (stop func(), err error) {
	return s.renew(ctx, id+"/"+RunningObject, "This backup is being made.\n")
}

// Pin keeps the backup with the id from expiring until stop is called. It fails if the credentials
// may not write.
func (s *Store) Pin(ctx context.Context, id string) (stop func(), err error) {
	name := id + "/" + readingPrefix + rand.Text()
	end, err := s.renew(ctx, name, "This backup is being read.\n")
	if err != nil {
		return nil, err
	}
	return func() {
		end()
		// One that stays is not renewed, and keeps nothing.
		_ = s.Delete(context.WithoutCancel(ctx), name)
	}, nil
}

// IsRead reports whether a pod reads the backup with the id. The one with the id own is being made by
// the caller: both times are the store's, so its clock alone counts.
func (s *Store) IsRead(ctx context.Context, id, own string) (bool, error) {
	now, err := s.list(ctx, s.folders.of(own), own+"/"+RunningObject)
	if err != nil || len(now) == 0 {
		return false, err
	}
	pins, err := s.list(ctx, s.folders.of(id), id+"/"+readingPrefix)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(pins, func(o object) bool { return now[0].modified.Sub(o.modified) < 4*s.beat }), nil
}

// renew writes an object again with every beat until stop is called.
func (s *Store) renew(ctx context.Context, name, text string) (stop func(), err error) {
	mark := func() error { return s.Write(ctx, name, []byte(text)) }
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
				// The next beat makes up for a failed one. If the store is unreachable, what the
				// pod does fails too.
				_ = mark()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}, nil
}

// RemoveDead removes unfinished backups whose pods are dead. The one with the id own is the
// caller's. If the RunningObject of another one was written recently, it waits for three beats to
// find out whether that pod is still running.
func (s *Store) RemoveDead(ctx context.Context, own string, ids []string) error {
	before, err := s.beats(ctx)
	if err != nil {
		return err
	}
	recent := func(id string) bool {
		last, ok := before[id]
		// Both times are the store's, so its clock alone counts.
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
	// Uploads are listed before the beats: a pod writes its RunningObject before it uploads, so
	// no live pod's upload is taken for a dead one's.
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
	// Backups that were removed before may have left uploads that could not be aborted then.
	for id, u := range uploads {
		if !alive[id] {
			errs = append(errs, s.abandon(ctx, u))
		}
	}
	return errors.Join(errs...)
}

// removeUnfinished removes an unfinished backup, unless it was finished meanwhile.
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

// beats returns when the RunningObject of each backup was last written, by the ids of the
// backups.
func (s *Store) beats(ctx context.Context) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	err := s.eachObject(ctx, func(id, name string, o object) {
		if name == RunningObject {
			out[id] = o.modified
		}
	})
	return out, err
}
