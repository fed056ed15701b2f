package pgbackrest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrNone is why there is nothing to restore.
var ErrNone = errors.New("there is no backup")

// ErrSystems is of a place that holds backups of several databases, like one that
// was deleted and one that was created under its name.
var ErrSystems = errors.New("there are backups of several databases")

// Place in a repository of the backups of one database: its system identifier, with a
// suffix where it was restored.
type Place struct {
	Stanza string

	// Count of its backups, and when the First and the Last of them were complete.
	Count       int
	First, Last time.Time
}

func (s Place) String() string {
	if s.Count == 1 {
		return fmt.Sprintf("%s (1 backup, complete at %s)", s.Stanza, stamp(s.First))
	}
	return fmt.Sprintf("%s (%d backups, complete from %s to %s)", s.Stanza, s.Count, stamp(s.First), stamp(s.Last))
}

// Places that sets, oldest first, are in. The one with the oldest set is first.
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

// Choose the set to restore to a time, or the newest for none. The stanza names
// whose it is; without it there must be only one.
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
