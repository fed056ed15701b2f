package run

import (
	"context"
	"errors"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/gtid"
)

// expire removes the segments of binary logs whose transactions each backup has: no restore needs them. The oldest by
// its id need not be the one that has the fewest: another one may have begun to copy before it. Those of another system
// stay, as its backups do.
func (copies) expire(ctx context.Context, j *job, left *store.Listing) error {
	system := ownSystem(left)
	oldest := oldestOf(left, system)
	if oldest == nil {
		return nil
	}
	var kept []gtid.Set
	for _, item := range left.Good() {
		if !isOf(item, system) {
			continue
		}
		has, err := gtid.Parse(item.Manifest.Position)
		if err != nil {
			return backup.Errorf(backup.BackupCorrupt, "the manifest of %s: %w", item.ID, err)
		}
		kept = append(kept, has)
	}
	logs, err := j.storeOf(ctx, backup.BinaryLog)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }()
	// One that is younger has newer transactions, too.
	l, err := logs.Before(ctx, oldest.Finished.Add(segmentMargin))
	if err != nil {
		return err
	}
	a := segment.Archive{}
	var errs []error
	for _, item := range l.Items {
		if item.Err != nil {
			// What it has is in another one, or is missing. Nothing can be restored from before the oldest backup.
			if item.Entry().Time.Before(oldest.Started.Add(-segmentMargin)) && !foreign(item.Err) {
				errs = append(errs, logs.Remove(ctx, item.ID))
			}
			continue
		}
		s, err := segment.Of(item.Manifest)
		if err != nil {
			return err
		}
		a.Segments = append(a.Segments, s)
	}
	for _, id := range l.Unfinished {
		// Its removal was interrupted.
		if at, err := backup.ParseID(id); err == nil && at.Before(oldest.Started.Add(-segmentMargin)) {
			errs = append(errs, logs.Remove(ctx, id))
		}
	}
	for _, s := range a.Of(system).Expired(kept) {
		errs = append(errs, logs.Remove(ctx, s.ID))
	}
	return errors.Join(errs...)
}

// oldestOf returns the oldest good backup of a system, or nil.
func oldestOf(l *store.Listing, system string) *backup.Manifest {
	for _, item := range l.Good() {
		if isOf(item, system) {
			return item.Manifest
		}
	}
	return nil
}

// delete removes all segments of binary logs, and the records of how far they get.
func (copies) delete(ctx context.Context, j *job) error {
	logs, err := j.storeOf(ctx, backup.BinaryLog)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }()
	records, err := logs.Beside(ctx, reachedPrefix)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range records {
		errs = append(errs, logs.Delete(ctx, name))
	}
	return errors.Join(append(errs, logs.RemoveAll(ctx))...)
}
