package run

import (
	"slices"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/gtid"
)

// shown is how many backups a Catalog lists.
const shown = 10

// catalog summarizes the good backups of a listing.
func catalog(l *store.Listing) *backup.Catalog {
	c := &backup.Catalog{System: ownSystem(l)}
	c.Others = otherSystems(l, c.System)
	good := slices.DeleteFunc(l.Good(), func(i store.Item) bool { return !isOf(i, c.System) })
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
		c.Oldest = new(timeOf(good[len(good)-1]))
	}
	return c
}

// firstSealed returns the oldest backup that is sealed with the key, damaged or not, or nil.
func firstSealed(l *store.Listing) *store.Item {
	i := slices.IndexFunc(l.Items, func(i store.Item) bool {
		return i.Manifest != nil && i.Manifest.Recipient != "" && !foreign(i.Err)
	})
	if i < 0 {
		return nil
	}
	return &l.Items[i]
}

// isUnsealed reports whether a backup that is not authentic is a plain one from before encryption
// was turned on: whether it is older than the first sealed backup.
//
// The age that a plain manifest states can be forged, so it counts only against the backup. What
// counts for the backup is the time at which the store received its manifest, which the writer
// cannot choose. That time is compared with the start time in the first sealed manifest, which
// was written with the key: a sealed manifest that is written again unchanged looks no younger. A
// backup whose time is unknown does not count as older. Without any sealed backup there is
// nothing to be older than, and nothing that a plain one could replace: it counts as
// unsealed, and the condition Verified is False.
//
// Only the reported reason depends on the result: neither kind is counted, verified or restored.
// A client that can delete the first sealed backups moves the border, and gains no more than the
// milder reason.
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

// choose returns the backup that a Task names: by its id, or the newest up to a time, or the
// newest, good or not, unless there are several databases' for a Restore to choose from. A Task may limit
// the choice to one of them. If that one is damaged, an older one is not taken instead, which is for
// the user to decide. But backups that were not written with the key, or cannot be read with it,
// are skipped unless the id names them. A plain one beside encrypted ones is not restored unless
// the id names it. Times are compared by the second, so that a time copied
// from a status matches its own backup.
func choose(l *store.Listing, t backup.Task) (store.Item, error) {
	items := ofSystem(l.Items, t.System)
	slices.Reverse(items)
	if t.Action == backup.Restore && t.ID == "" && t.Time == nil && t.System == "" {
		if err := ambiguous(l, methodOf(t).chosenBy()); err != nil {
			return store.Item{}, err
		}
	}
	before, err := gtid.Parse(t.Before)
	if err != nil {
		return store.Item{}, backup.Errorf(backup.InvalidTask, "cannot read the transaction to restore up to: %w", err)
	}
	var skipped error
	for _, item := range items {
		switch {
		case t.ID != "" && item.ID != t.ID:
			continue
		case t.ID == "" && t.Time != nil && timeOf(item).Truncate(time.Second).After(*t.Time):
			continue
		case t.ID == "" && hasTransaction(item, before):
			continue
		case t.ID == "" && foreign(item.Err):
			if skipped == nil {
				skipped = item.Err
			}
			continue
		case accepted(item, t):
		case item.Err != nil:
			return store.Item{}, item.Err
		case t.ID == "" && t.Action == backup.Restore && item.Manifest.Recipient == "":
			return item, plainBeside(l, item)
		}
		return item, nil
	}
	if skipped != nil {
		return store.Item{}, skipped
	}
	return store.Item{}, missing(items, t)
}

// missing returns why none of the backups, newest first, is the one that a Task names.
func missing(items []store.Item, t backup.Task) error {
	switch {
	case t.ID != "":
		return backup.Errorf(backup.BackupMissing, "there is no backup %s", t.ID)
	case t.Time != nil && len(items) > 0 && t.Method == backupv1.Physical:
		return backup.Errorf(backup.BackupMissing, "no backup was complete at %s: the oldest was at %s", t.Time.UTC().Format("2006-01-02 15:04:05 MST"), timeOf(items[len(items)-1]).UTC().Format("2006-01-02 15:04:05 MST"))
	case t.Time != nil && len(items) > 0:
		return backup.Errorf(backup.BackupMissing, "there is no backup of %s or before", t.Time.UTC().Format("2006-01-02 15:04:05 MST"))
	case t.Before != "" && len(items) > 0:
		return backup.Errorf(backup.BackupMissing, "all backups have transaction %s already", t.Before)
	case t.System != "":
		return backup.Errorf(backup.BackupMissing, "there is no backup of system %s", t.System)
	}
	return backup.Errorf(backup.BackupMissing, "there is no backup")
}

// hasTransaction reports whether a backup has a transaction, unless that is the empty set. One that cannot be read has
// it not, as far as is known.
func hasTransaction(item store.Item, transaction gtid.Set) bool {
	if item.Manifest == nil || transaction.IsEmpty() {
		return false
	}
	has, err := gtid.Parse(item.Manifest.Position)
	return err == nil && has.Contains(transaction)
}

// timeOf returns the time that counts when a backup is chosen by time. A copy of files has what was committed until it
// was complete, and cannot be restored to an earlier time.
func timeOf(item store.Item) time.Time {
	if m := item.Manifest; m != nil && m.MethodOf() == backupv1.Physical {
		return m.Finished
	}
	return item.Entry().Time
}

// plainBeside returns an error if there are encrypted backups beside a plain one. A client that may
// write to the store, and has no key, could have added the plain one.
func plainBeside(l *store.Listing, plain store.Item) error {
	i := slices.IndexFunc(l.Items, func(i store.Item) bool { return i.Manifest != nil && i.Manifest.Recipient != "" })
	if i < 0 {
		return nil
	}
	return backup.Errorf(backup.KeyMissing, "backup %s is plain, and others beside it, such as %s, are encrypted: name their key in encryption, or name the plain backup in id", plain.ID, l.Items[i].ID)
}

// accepted reports whether a backup is restored although it is not authentic: a person has named it,
// it is encrypted for the key, and it has no seal. One with a wrong seal was changed, and a plain one
// needs no key.
func accepted(item store.Item, t backup.Task) bool {
	m := item.Manifest
	return t.Action == backup.Restore && t.AcceptUnsealed && t.ID != "" && item.ID == t.ID &&
		backup.ReasonOf(item.Err) == backup.BackupNotAuthentic && m != nil && m.Recipient != "" && m.Seal == ""
}

// foreign reports whether err means that a backup belongs to another key.
func foreign(err error) bool {
	r := backup.ReasonOf(err)
	return r == backup.BackupNotAuthentic || r == backup.KeyMissing
}

// expired returns the ids of the backups that expire by a policy: none of another system. A backup that is not good keeps
// no other one from expiring.
func expired(p backup.Policy, l *store.Listing, now time.Time) []string {
	var good, ids []string
	var entries []backup.Entry
	own := ownSystem(l)
	for _, item := range l.Good() {
		if !isOf(item, own) {
			continue
		}
		entries = append(entries, item.Entry())
		good = append(good, item.ID)
	}
	for _, e := range p.Expired(entries, now) {
		ids = append(ids, e.ID)
	}
	entries = slices.DeleteFunc(entries, func(e backup.Entry) bool { return slices.Contains(ids, e.ID) })
	for _, item := range l.Items {
		if slices.Contains(good, item.ID) || !isOf(item, own) {
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
