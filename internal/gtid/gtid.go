// Package gtid computes with sets of global transaction identifiers
// (https://dev.mysql.com/doc/refman/9.7/en/replication-gtids-concepts.html). What two servers have
// executed can be compared by them also while no server runs that could do it.
package gtid

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of transactions. The zero value is the empty set. A Set does not change.
type Set struct { //nolint:recvcheck // UnmarshalText alone changes one
	// intervals are sorted, and neither overlap nor touch. The key is the source: a UUID,
	// followed by a colon and a tag for transactions that have one.
	intervals map[string][]interval
}

// interval is a range of numbers, both ends included.
type interval struct{ first, last int64 }

// Parse parses a set as MySQL prints it: entries that are separated by commas and white space, each
// a UUID followed by intervals and tags, such as
//
//	3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:11:tag:1-3
func Parse(text string) (Set, error) {
	s := Set{intervals: map[string][]interval{}}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if err := s.add(entry); err != nil {
			return Set{}, fmt.Errorf("cannot read GTID set %q: %w", text, err)
		}
	}
	for source, of := range s.intervals {
		s.intervals[source] = merge(of)
	}
	return s, nil
}

// add adds an entry of a text. The result is not sorted.
func (s *Set) add(entry string) error {
	parts := strings.Split(entry, ":")
	uuid := strings.ToLower(strings.TrimSpace(parts[0]))
	if !isUUID(uuid) {
		return fmt.Errorf("%q is no UUID", parts[0])
	}
	source, empty := uuid, true
	for _, part := range parts[1:] {
		part = strings.ToLower(strings.TrimSpace(part))
		if isTag(part) {
			source = uuid + ":" + part
			continue
		}
		i, err := parseInterval(part)
		if err != nil {
			return err
		}
		s.intervals[source], empty = append(s.intervals[source], i), false
	}
	if empty {
		return fmt.Errorf("%q has no interval", entry)
	}
	return nil
}

func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}

// isTag reports whether a part of an entry is a tag, which begins with no digit.
func isTag(part string) bool {
	return part != "" && (part[0] == '_' || part[0] >= 'a' && part[0] <= 'z')
}

func parseInterval(text string) (interval, error) {
	from, to, both := strings.Cut(text, "-")
	first, err := parseNumber(from)
	if err != nil {
		return interval{}, err
	}
	last := first
	if both {
		if last, err = parseNumber(to); err != nil {
			return interval{}, err
		}
	}
	if last < first {
		return interval{}, fmt.Errorf("interval %q ends before it begins", text)
	}
	return interval{first, last}, nil
}

func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	// The last number that MySQL gives is one less than the largest
	// (https://dev.mysql.com/doc/refman/9.7/en/replication-gtids-concepts.html).
	if err != nil || n < 1 || n == math.MaxInt64 {
		return 0, fmt.Errorf("%q is no number of a transaction", text)
	}
	return n, nil
}

// merge sorts intervals and merges those that overlap or touch.
func merge(of []interval) []interval {
	of = slices.Clone(of)
	slices.SortFunc(of, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	out := of[:0]
	for _, i := range of {
		if n := len(out); n > 0 && i.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, i.last)
			continue
		}
		out = append(out, i)
	}
	return out
}

// String returns the set as MySQL prints it, sorted by source and without white space. Tags of one
// UUID are entries of their own.
func (s Set) String() string {
	var b strings.Builder
	for _, source := range slices.Sorted(maps.Keys(s.intervals)) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(source)
		for _, i := range s.intervals[source] {
			fmt.Fprintf(&b, ":%d", i.first)
			if i.last > i.first {
				fmt.Fprintf(&b, "-%d", i.last)
			}
		}
	}
	return b.String()
}

// IsEmpty reports whether the set has no transaction.
func (s Set) IsEmpty() bool { return len(s.intervals) == 0 }

// Len returns the number of transactions.
func (s Set) Len() int64 {
	var n int64
	for _, of := range s.intervals {
		for _, i := range of {
			n += i.last - i.first + 1
		}
	}
	return n
}

// Contains reports whether the set has all transactions of another one.
func (s Set) Contains(other Set) bool { return other.Minus(s).IsEmpty() }

// Equal reports whether two sets have the same transactions.
func (s Set) Equal(other Set) bool { return s.String() == other.String() }

// Union returns the transactions of both sets.
func (s Set) Union(other Set) Set {
	out := Set{intervals: map[string][]interval{}}
	for _, of := range []Set{s, other} {
		for source, i := range of.intervals {
			out.intervals[source] = merge(slices.Concat(out.intervals[source], i))
		}
	}
	return out
}

// Minus returns the transactions of the set that another one does not have.
func (s Set) Minus(other Set) Set {
	out := Set{intervals: map[string][]interval{}}
	for source, of := range s.intervals {
		if rest := subtract(of, other.intervals[source]); len(rest) > 0 {
			out.intervals[source] = rest
		}
	}
	return out
}

// subtract returns the parts of sorted intervals that are in none of others, which are sorted too.
func subtract(of, others []interval) []interval {
	var out []interval
	for _, i := range of {
		for _, o := range others {
			if o.last < i.first || o.first > i.last {
				continue
			}
			if o.first > i.first {
				out = append(out, interval{i.first, o.first - 1})
			}
			i.first = o.last + 1
		}
		if i.first <= i.last {
			out = append(out, i)
		}
	}
	return out
}

// MarshalText implements encoding.TextMarshaler.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Set) UnmarshalText(text []byte) error {
	v, err := Parse(string(text))
	*s = v
	return err
}
