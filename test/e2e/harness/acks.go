package harness

import (
	"cmp"
	"fmt"
	"slices"
)

// Ack is a write that a database acknowledged. Sent and At are seconds on the clock of the program
// that wrote.
type Ack struct {
	Sent   float64 `json:"sent"`
	At     float64 `json:"at"`
	Writer string  `json:"writer"`
	Seq    int     `json:"seq"`

	// Server is the address of the server that took the write, and Timeline the timeline that it
	// was on.
	Server   string `json:"server"`
	Timeline int    `json:"timeline"`
}

// Rows is a range of consecutive rows of one writer, both ends included.
type Rows struct {
	Writer string `json:"writer"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
}

// Gap returns the longest time without an acknowledgement, in seconds, among the gaps that end
// after from and begin before to.
func Gap(acks []Ack, from, to float64) float64 {
	begin, end := Silence(acks, from, to)
	return end - begin
}

// Silence returns when the gap that Gap measures began and ended.
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

// Missing returns the acknowledged writes that are not among the rows: they are lost.
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

// Reign is the time during which one server was primary on one timeline.
type Reign struct {
	Server   string
	Timeline int

	// First and Last are the times of the first and the last acknowledgement.
	First, Last float64
}

func (r Reign) String() string { return fmt.Sprintf("%s on timeline %d", r.Server, r.Timeline) }

// Reigns returns the reigns in the order in which they began.
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

// Duel returns an error if two servers were primary at the same time: a server took a write that
// was sent after the next primary had acknowledged one. An answer that merely arrives late is no
// error here: Missing checks whether its row was kept.
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
