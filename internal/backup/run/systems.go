package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/store"
)

// A database that is lost and created again under its name backs up to the folder of the lost one.
// The backups of the lost one do not expire by those of the new one, which may be empty, and no
// Restore takes one of them without being asked to. The two are distinguished by the identifier that
// PostgreSQL's initdb generates, or a DatabaseCluster of engine mysql. Other engines have none that outlives a server.

// ownSystem returns the system of the newest backup that was written with the key, or "".
func ownSystem(l *store.Listing) string {
	own, newest := "", time.Time{}
	for _, item := range l.Items {
		// Items are sorted by id, which has no parts of a second.
		if m := item.Manifest; m != nil && m.System != "" && !foreign(item.Err) && !m.Started.Before(newest) {
			own, newest = m.System, m.Started
		}
	}
	return own
}

// isOf reports whether a backup may be of a system: those of older releases name none.
func isOf(item store.Item, system string) bool {
	return item.Manifest == nil || item.Manifest.System == "" || system == "" || item.Manifest.System == system
}

// maxOthers is the largest number of other systems in a Catalog.
const maxOthers = 5

// otherSystems summarizes the good backups of other systems, in the order of their first ones.
func otherSystems(l *store.Listing, own string) []backup.System {
	var out []backup.System
	for _, item := range l.Good() {
		if isOf(item, own) {
			continue
		}
		at := item.Entry().Time
		i := slices.IndexFunc(out, func(s backup.System) bool { return s.ID == item.Manifest.System })
		if i < 0 {
			i, out = len(out), append(out, backup.System{ID: item.Manifest.System, First: at})
		}
		out[i].Count++
		out[i].Last = at
	}
	return out[max(0, len(out)-maxOthers):]
}

// ofSystem returns the backups that may be of a system, or all for "". One whose manifest cannot be read may be of
// any: an older one is not taken in its place.
func ofSystem(items []store.Item, system string) []store.Item {
	return slices.DeleteFunc(slices.Clone(items), func(i store.Item) bool {
		return system != "" && i.Manifest != nil && i.Manifest.System != system
	})
}

// ambiguous returns an error if there are backups of several systems, which a Restore that names
// neither a backup nor a time does not choose from. It ends with how to choose.
func ambiguous(l *store.Listing, how string) error {
	own := ownSystem(l)
	others := otherSystems(l, own)
	if len(others) == 0 {
		return nil
	}
	var list []string
	for _, s := range others {
		list = append(list, fmt.Sprintf("%d of %s, from %s to %s", s.Count, s.ID, s.First.UTC().Format(time.RFC3339), s.Last.UTC().Format(time.RFC3339)))
	}
	return backup.Errorf(backup.InvalidTask, "the backups are of several databases that had this name: beside those of %s there are %s. %s", own, strings.Join(list, "; "), how)
}
