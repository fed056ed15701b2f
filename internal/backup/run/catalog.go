package run

import (
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/store"
)

// shown is how many backups a Catalog names.
const shown = 10

// catalog of the good backups.
func catalog(l *store.Listing) *backup.Catalog {
	c := &backup.Catalog{}
	good := l.Good()
	slices.Reverse(good)
	for _, item := range good {
		e := item.Entry()
		c.Count++
		c.Total += e.Size
		if len(c.Backups) < shown {
			c.Backups = append(c.Backups, e)
		}
		if c.Verified == nil && e.Verified != nil {
			c.Verified = &e
		}
	}
	first := firstSealed(l)
	for _, item := range slices.Backward(l.Items) {
		switch {
		case backup.ReasonOf(item.Err) != backup.BackupNotAuthentic:
		case isUnsealed(item, first):
			c.Unsealed++
		case len(c.NotAuthentic) < shown:
			c.NotAuthentic = append(c.NotAuthentic, item.ID)
		}
	}
	if len(good) > 0 {
		c.Latest = new(good[0].Entry().Time)
		c.Oldest = new(good[len(good)-1].Entry().Time)
	}
	return c
}

// firstSealed is the oldest backup that is sealed with the key, damaged or not, or nil.
func firstSealed(l *store.Listing) *store.Item {
	i := slices.IndexFunc(l.Items, func(i store.Item) bool {
		return i.Manifest != nil && i.Manifest.Recipient != "" && !foreign(i.Err)
	})
	if i < 0 {
		return nil
	}
	return &l.Items[i]
}

// isUnsealed tells whether a backup that is not authentic is a plain one from before
// encryption was turned on: it is older than the first that is sealed.
//
// Its own account of its age can be forged, so that counts against it only.
// For it counts when the store took its manifest, which is not for the writer to choose. It
// is held against the time within the first seal, which was written with the key: a sealed
// manifest that is written once more as it is grows no younger by it. One whose time is not
// known is not older. Where nothing is sealed there is nothing to be older than, nor anything
// that a plain backup could stand in for, and then the condition Verified is False for it.
//
// Only what is said depends on it: neither kind is counted, verified or restored. Who can
// delete the first sealed ones moves that border, and gains no more than the milder word.
func isUnsealed(item store.Item, first *store.Item) bool {
	switch {
	case item.Manifest == nil || item.Manifest.Recipient != "":
		return false
	case first == nil:
		return true
	}
	began := first.Manifest.Started
	return item.ID < first.ID && item.Entry().Time.Before(began) && !item.Written.IsZero() && item.Written.Before(began)
}

// choose the backup that a Task asks for: by its id, the newest up to a time, or
// the newest, good or not. To take an older one in its stead is not ours to decide. But
// one that others have written, or that only others can read, is none that was asked for.
// A time has no parts of a second: one that is copied from a status is its own.
func choose(l *store.Listing, t backup.Task) (store.Item, error) {
	items := slices.Clone(l.Items)
	slices.Reverse(items)
	var skipped error
	for _, item := range items {
		switch {
		case t.ID != "" && item.ID != t.ID:
			continue
		case t.ID == "" && t.Time != nil && item.Entry().Time.Truncate(time.Second).After(*t.Time):
			continue
		case t.ID == "" && foreign(item.Err):
			if skipped == nil {
				skipped = item.Err
			}
			continue
		case item.Err != nil:
			return store.Item{}, item.Err
		}
		return item, nil
	}
	switch {
	case skipped != nil:
		return store.Item{}, skipped
	case t.ID != "":
		return store.Item{}, backup.Errorf(backup.BackupMissing, "there is no backup %s", t.ID)
	case t.Time != nil && len(items) > 0:
		return store.Item{}, backup.Errorf(backup.BackupMissing, "there is no backup of %s or before", t.Time.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return store.Item{}, backup.Errorf(backup.BackupMissing, "there is no backup")
}

// foreign backups are other ones' than the key's.
func foreign(err error) bool {
	r := backup.ReasonOf(err)
	return r == backup.BackupNotAuthentic || r == backup.KeyMissing
}

// expired backups of a policy, oldest first. One that is not good saves no other
// one from expiring.
func expired(p backup.Policy, l *store.Listing, now time.Time) []string {
	var good, ids []string
	var entries []backup.Entry
	for _, item := range l.Good() {
		entries = append(entries, item.Entry())
		good = append(good, item.ID)
	}
	for _, e := range p.Expired(entries, now) {
		ids = append(ids, e.ID)
	}
	entries = slices.DeleteFunc(entries, func(e backup.Entry) bool { return slices.Contains(ids, e.ID) })
	for _, item := range l.Items {
		if slices.Contains(good, item.ID) {
			continue
		}
		e := item.Entry()
		e.Verified = nil
		alone := p.Expired(append(slices.Clone(entries), e), now)
		if slices.ContainsFunc(alone, func(x backup.Entry) bool { return x.ID == e.ID }) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}
