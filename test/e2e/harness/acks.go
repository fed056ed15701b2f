package harness

import (
	"cmp"
	"fmt"
	"slices"
)

// Ack is a write that a database acknowledged, in seconds on the clock of the
// program that made it.
type Ack struct {
	Sent   float64 `json:"sent"`
	At     float64 `json:"at"`
	Writer string  `json:"writer"`
	Seq    int     `json:"seq"`

	// Server is the address of the one that took it, Timeline the one that it
	// was on.
	Server   string `json:"server"`
	Timeline int    `json:"timeline"`
}

// Rows are neighbouring rows of a writer.
type Rows struct {
	Writer string `json:"writer"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
}

// Gap is the longest time without an acknowledgement that was not over by from
// and had begun by to.
func Gap(acks []Ack, from, to float64) float64 {
	begin, end := Silence(acks, from, to)
	return end - begin
}

// Silence is when the Gap began, and when it ended.
func Silence(acks []Ack, from, to float64) (begin, end float64) {
	last := from
	begin, end = from, from
	longest := func(until float64) {
		if until-last > end-begin {
			begin, end = last, until
		}
	}
	for _, a := range byTime(acks) {
		switch {
		case a.At <= from:
			last = a.At
		case last < to:
			longest(a.At)
			last = a.At
		}
	}
	longest(to)
	return begin, end
}

func byTime(acks []Ack) []Ack {
	return slices.SortedStableFunc(slices.Values(acks), func(a, b Ack) int { return cmp.Compare(a.At, b.At) })
}

// Missing are acknowledged writes that are no rows: lost.
func Missing(acks []Ack, rows []Rows) []Ack {
	of := map[string][]Rows{}
	for _, r := range rows {
		of[r.Writer] = append(of[r.Writer], r)
	}
	for _, rs := range of {
		slices.SortFunc(rs, func(a, b Rows) int { return a.First - b.First })
	}
	var out []Ack
	for _, a := range acks {
		rs := of[a.Writer]
		i, found := slices.BinarySearchFunc(rs, a.Seq, func(r Rows, seq int) int { return r.First - seq })
		if !found && (i == 0 || rs[i-1].Last < a.Seq) {
			out = append(out, a)
		}
	}
	return out
}

// Reign is a server's time as primary.
type Reign struct {
	Server   string
	Timeline int

	// First acknowledgement, and Last.
	First, Last float64
}

func (r Reign) String() string { return fmt.Sprintf("%s on timeline %d", r.Server, r.Timeline) }

// Reigns in the order in which they began.
func Reigns(acks []Ack) []Reign {
	var out []Reign
	for _, a := range byTime(acks) {
		i := slices.IndexFunc(out, func(r Reign) bool { return r.Server == a.Server && r.Timeline == a.Timeline })
		if i < 0 {
			out = append(out, Reign{Server: a.Server, Timeline: a.Timeline, First: a.At})
			i = len(out) - 1
		}
		out[i].Last = a.At
	}
	return out
}

// Duel is the error of two primaries at a time: a server took a write that was
// sent after the next primary had acknowledged one. An answer that was only late
// is none: whether its row was kept is what Missing tells.
func Duel(acks []Ack) error {
	reigns := Reigns(acks)
	for _, a := range byTime(acks) {
		own := slices.IndexFunc(reigns, func(r Reign) bool { return r.Server == a.Server && r.Timeline == a.Timeline })
		for i, r := range reigns {
			newer := r.Timeline > a.Timeline || r.Timeline == a.Timeline && i > own
			if newer && r.First < a.Sent {
				return fmt.Errorf("two primaries at a time: %s acknowledged a write %.2fs after %s had", reigns[own], a.At-r.First, r)
			}
		}
	}
	return nil
}
