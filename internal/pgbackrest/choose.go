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

// Of the sets those of one stanza.
func Of(sets []Set, stanza string) []Set {
	return slices.DeleteFunc(slices.Clone(sets), func(s Set) bool { return s.Stanza != stanza })
}

// System is a database whose backups are in a repository, by its identifier.
type System struct {
	Stanza string

	// Count of its backups, and when the First and the Last of them were complete.
	Count       int
	First, Last time.Time
}

func (s System) String() string {
	if s.Count == 1 {
		return fmt.Sprintf("%s (1 backup, complete at %s)", s.Stanza, stamp(s.First))
	}
	return fmt.Sprintf("%s (%d backups, complete from %s to %s)", s.Stanza, s.Count, stamp(s.First), stamp(s.Last))
}

// Systems that sets, oldest first, are of. The one with the oldest set is first.
func Systems(sets []Set) []System {
	var out []System
	for _, s := range sets {
		i := slices.IndexFunc(out, func(o System) bool { return o.Stanza == s.Stanza })
		if i < 0 {
			i, out = len(out), append(out, System{Stanza: s.Stanza, First: s.First()})
		}
		out[i].Count++
		out[i].Last = s.First()
	}
	return out
}

func list(systems []System) string {
	words := make([]string, 0, len(systems))
	for _, s := range systems {
		words = append(words, s.String())
	}
	return strings.Join(words, ", ")
}

// Choose the set to restore to a time, or the newest for none. The stanza names
// whose it is; without it there must be only one.
func Choose(sets []Set, stanza string, target, now time.Time) (Set, error) {
	systems := Systems(sets)
	switch {
	case len(sets) == 0:
		return Set{}, ErrNone
	case stanza == "" && len(systems) > 1:
		return Set{}, fmt.Errorf("%w: %s", ErrSystems, list(systems))
	case stanza != "":
		if sets = Of(sets, stanza); len(sets) == 0 {
			return Set{}, fmt.Errorf("%w of system identifier %s, only of %s", ErrNone, stanza, list(systems))
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
