package run

import (
	"context"
	"errors"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/gtid"
)

// expire removes the segments of binary logs whose transactions the oldest backup has: no restore needs them. Those of
// another system stay, as its backups do.
func (copies) expire(ctx context.Context, j *job, left *store.Listing) error {
	system := ownSystem(left)
	oldest := oldestOf(left, system)
	if oldest == nil {
		return nil
	}
	has, err := gtid.Parse(oldest.Position)
	if err != nil {
		return backup.Errorf(backup.BackupCorrupt, "the manifest of %s: %w", oldest.ID, err)
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
	for _, s := range a.Of(system).Expired(has) {
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

// delete removes all segments of binary logs.
func (copies) delete(ctx context.Context, j *job) error {
	logs, err := j.storeOf(ctx, backup.BinaryLog)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }()
	return errors.Join(logs.Delete(ctx, reachedObject), logs.RemoveAll(ctx))
}
