package pgbackrest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrNone means that there is nothing to restore.
var ErrNone = errors.New("there is no backup")

// ErrSystems means that a repository has backups of several databases, such as one that was
// deleted and one that was created under its name.
var ErrSystems = errors.New("there are backups of several databases")

// A Place is where a repository has the backups of one database: its stanza, which is the system
// identifier, with a suffix if the database was restored.
type Place struct {
	Stanza string

	// Count is the number of its backups, and First and Last are when the first and the last of
	// them were complete.
	Count       int
	First, Last time.Time
}

func (s Place) String() string {
	if s.Count == 1 {
		return fmt.Sprintf("%s (1 backup, complete at %s)", s.Stanza, stamp(s.First))
	}
	return fmt.Sprintf("%s (%d backups, complete from %s to %s)", s.Stanza, s.Count, stamp(s.First), stamp(s.Last))
}

// Places returns the places of sets, which must be sorted with the oldest first. The place with
// the oldest set is first.
func Places(sets []Set) []Place {
	var out []Place
	for _, s := range sets {
		i := slices.IndexFunc(out, func(o Place) bool { return o.Stanza == s.Stanza })
		if i < 0 {
			i, out = len(out), append(out, Place{Stanza: s.Stanza, First: s.First()})
		}
		out[i].Count++
		out[i].Last = s.First()
	}
	return out
}

func list(places []Place) string {
	words := make([]string, 0, len(places))
	for _, s := range places {
		words = append(words, s.String())
	}
	return strings.Join(words, ", ")
}

// Choose returns the newest set from which a time can be restored, or the newest set for the zero
// time. Without a stanza, all sets must be of the same one.
func Choose(sets []Set, stanza string, target, now time.Time) (Set, error) {
	places := Places(sets)
	switch {
	case len(sets) == 0:
		return Set{}, ErrNone
	case stanza == "" && len(places) > 1:
		return Set{}, fmt.Errorf("%w: %s", ErrSystems, list(places))
	case stanza != "":
		if sets = Of(stanza, sets); len(sets) == 0 {
			return Set{}, fmt.Errorf("%w of system identifier %s, only of %s", ErrNone, stanza, list(places))
		}
	}
	if target.IsZero() {
		return sets[len(sets)-1], nil
	}
	if target.After(now) {
		return Set{}, fmt.Errorf("%w for the time %s, which has not come yet", ErrNone, stamp(target))
	}
	for _, s := range slices.Backward(sets) {
		if !s.First().After(target) {
			return s, nil
		}
	}
	return Set{}, fmt.Errorf("%w from before %s: the oldest was complete at %s", ErrNone, stamp(target), stamp(sets[0].First()))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
