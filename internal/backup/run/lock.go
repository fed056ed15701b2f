package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// lockBeat is how often a restore renews its locks. A lock that was not renewed for deadBeats of
// them belongs to a dead pod, and may be taken. A pod that could not renew its own locks for
// silentBeats gives up, before another pod may take them.
const (
	lockBeat    = 15 * time.Second
	deadBeats   = 4
	silentBeats = 3
)

// A hold is a restore's locks on its targets. Without locks, two restores into one database would
// both find it empty, and one that fails would drop what the other completed.
type hold struct {
	job *job

	// ctx ends when a lock is lost.
	ctx    context.Context //nolint:containedctx // a hold lives as long as the restore
	cancel context.CancelCauseFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	locks []*held

	// id is the backup that is written.
	id string

	// failed is why the hold ended by itself, if it did.
	failed error
}

// A held is the lock of one database.
type held struct {
	database string
	lock     engine.Lock

	// before is the lock that was taken from a dead pod, or nil.
	before *engine.Lock

	// resumes means that before was of a pod of this Restore that had begun to write.
	resumes bool

	// cleared means that the database was emptied, or was empty, before this pod wrote. partial
	// means that it holds a part of a backup, which is dropped again. stays means that it could not
	// be dropped, so that the lock is not released.
	cleared, partial, stays bool

	// overwritten means that content which the Restore was to overwrite was dropped, all or a part of
	// it.
	overwritten bool

	// whole means that all of the backup was written, by this pod or by an earlier one of this
	// Restore. Where something fails then, the lock stays for the next pod.
	whole bool
}

// lock locks databases. All restores lock them in the same order.
func (j *job) lock(ctx context.Context, id string, databases []string) (*hold, error) {
	h := &hold{job: j, id: id}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	token := rand.Text()
	owner := cmp.Or(j.task.UID, token)
	for _, database := range slices.Compact(slices.Sorted(slices.Values(databases))) {
		l, err := j.acquire(ctx, database, engine.Lock{Owner: owner, Name: j.task.Restore, Token: token, Backup: id, Beat: 1})
		if err != nil {
			_ = h.release()
			return nil, err
		}
		h.locks = append(h.locks, l)
	}
	h.done.Go(h.renewing)
	return h, nil
}

// beat returns how often the locks are renewed.
func (j *job) beat() time.Duration { return cmp.Or(j.LockBeat, lockBeat) }

// acquire takes the lock of a database if there is none, or if the existing one is no longer
// renewed, which shows within a minute. The latter includes the lock of a killed pod of this same
// Restore.
func (j *job) acquire(ctx context.Context, database string, want engine.Lock) (*held, error) {
	var seen *engine.Lock
	for quiet := 0; ; {
		found, err := j.server.Locked(ctx, database)
		if err != nil {
			return nil, err
		}
		switch {
		case found != nil && seen != nil && *found == *seen:
			quiet++
		case found != nil && seen != nil && found.Token == seen.Token:
			return nil, inUse(database, found)
		default:
			quiet = 0
		}
		if found == nil || quiet >= deadBeats {
			l := &held{database: database, lock: want, before: found}
			l.resumes = found != nil && found.Began && found.Owner == want.Owner
			l.whole = l.resumes && found.Restored
			l.lock.Began, l.lock.Restored = l.resumes, l.whole
			if l.whole {
				l.lock.Backup = found.Backup
			}
			if ok, err := j.server.Swap(ctx, database, found, &l.lock); ok || err != nil {
				return l, err
			}
			found = nil // another pod has taken it meanwhile
		}
		if seen = found; seen == nil {
			continue
		}
		if err := wait(ctx, j.beat()); err != nil {
			return nil, err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return backup.WithReason(backup.Interrupted, context.Cause(ctx))
	case <-timer.C:
		return nil
	}
}

func inUse(database string, l *engine.Lock) error {
	return backup.Errorf(backup.TargetLocked, "database %s is being restored by %s: wait until that has ended, and create another Restore, with overwrite, if this backup is to replace what it restored", database, nameOf(l))
}

// nameOf returns the name of a lock's owner for messages.
func nameOf(l *engine.Lock) string {
	if l.Name == "" {
		return "another program"
	}
	return "Restore " + l.Name
}

// has reports whether a database is locked.
func (h *hold) has(database string) bool {
	return slices.ContainsFunc(h.locks, func(l *held) bool { return l.database == database })
}

// of returns the lock of a database.
func (h *hold) of(database string) *held {
	i := slices.IndexFunc(h.locks, func(l *held) bool { return l.database == database })
	return h.locks[i]
}

// backup returns the id of the backup that an earlier pod of this Restore has written to the end into
// some of the databases, or "": the others must get the same one, whatever is the newest by now.
func (h *hold) backup() string {
	for _, l := range h.locks {
		if l.whole {
			return l.lock.Backup
		}
	}
	return ""
}

// begin records in all locks that from now on the databases hold what this Restore writes, and of which
// backup.
func (h *hold) begin(id string) error {
	h.mu.Lock()
	h.id = id
	h.mu.Unlock()
	for _, l := range h.locks {
		if err := h.renew(h.ctx, l, true); err != nil {
			return err
		}
	}
	return nil
}

// restored records in the lock of a database that it is whole. Until that is recorded, a pod that
// takes the lock would restore it again, and drop what other clients have written since.
func (h *hold) restored(l *held) error {
	h.mu.Lock()
	l.whole = true
	h.mu.Unlock()
	for {
		err := h.renew(h.ctx, l, true)
		if err == nil || backup.ReasonOf(err) == backup.TargetLocked {
			return err
		}
		h.job.sayf("cannot record that database %s is restored, trying again: %v", l.database, err)
		if e := wait(h.ctx, h.job.beat()); e != nil {
			return err
		}
	}
}

// renewing renews the locks until the hold ends or one of them is lost.
func (h *hold) renewing() {
	ticker := time.NewTicker(h.job.beat())
	defer ticker.Stop()
	silent := 0
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
		silent++
		var err error
		for _, l := range h.locks {
			err = cmp.Or(h.renewSoon(l), err)
		}
		switch {
		case err == nil:
			silent = 0
		case backup.ReasonOf(err) == backup.TargetLocked || silent >= silentBeats:
			h.failed = err
			h.cancel(err)
			return
		}
	}
}

// renewSoon renews a lock, or fails before the next renewal is due.
func (h *hold) renewSoon(l *held) error {
	ctx, cancel := context.WithTimeout(h.ctx, h.job.beat())
	defer cancel()
	return h.renew(ctx, l, false)
}

// renew renews a lock.
func (h *hold) renew(ctx context.Context, l *held, began bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 2 {
		next := l.lock
		next.Beat++
		next.Began = began || next.Began
		if next.Restored = l.whole; next.Backup == "" || !l.lock.Restored {
			next.Backup = h.id
		}
		ok, err := h.job.server.Swap(ctx, l.database, &l.lock, &next)
		if err != nil {
			return err
		}
		if ok {
			l.lock = next
			return nil
		}
		// The swap may have succeeded although its answer was lost.
		found, err := h.job.server.Locked(ctx, l.database)
		if err != nil {
			return err
		}
		if found == nil || found.Token != l.lock.Token {
			return lost(l.database, found)
		}
		l.lock = *found
	}
	return lost(l.database, nil)
}

func lost(database string, to *engine.Lock) error {
	if to == nil {
		return backup.Errorf(backup.TargetLocked, "the lock of database %s was removed while the restore went on: see what the database holds, and create another Restore, with overwrite", database)
	}
	return backup.Errorf(backup.TargetLocked, "database %s was taken over by %s while this restore could not reach it", database, nameOf(to))
}

// ours reports whether this pod still has the lock of a database.
func (h *hold) ours(ctx context.Context, l *held) bool { return h.renew(ctx, l, false) == nil }

// unlock replaces a lock of this pod by another one, or by none. The last renewal may have succeeded
// although its answer was lost, as when it is interrupted by the end of the hold.
func (h *hold) unlock(ctx context.Context, l *held, to *engine.Lock) error {
	for range 2 {
		ok, err := h.job.server.Swap(ctx, l.database, &l.lock, to)
		if ok || err != nil {
			return err
		}
		found, err := h.job.server.Locked(ctx, l.database)
		if err != nil || found == nil || found.Token != l.lock.Token {
			return err
		}
		l.lock = *found
	}
	return lost(l.database, nil)
}

// release releases the locks, even if the pod is being stopped, and returns why the hold ended
// before, if it did. If the content of a database is unchanged, a lock that was taken from a dead
// pod is put back, as it records whose the content is.
func (h *hold) release() error {
	h.cancel(nil)
	h.done.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), cleanUpWithin)
	defer cancel()
	for _, l := range h.locks {
		if l.stays {
			continue
		}
		var to *engine.Lock
		if !l.cleared && !l.whole {
			to = l.before
		}
		if err := h.unlock(ctx, l, to); err != nil {
			h.job.sayf("cannot unlock database %s: %v", l.database, err)
		}
	}
	return h.failed
}
