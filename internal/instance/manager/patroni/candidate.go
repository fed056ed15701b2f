package patroni

import (
	"slices"
	"strings"
)

// Candidate returns the standby that is best to hand over to, or "": it streams, may lead, may
// acknowledge writes if synchronous, and lags least. fit reports which pods may be chosen at
// all.
func (c *Cluster) Candidate(synchronous bool, fit func(pod string) bool) string {
	var best *Member
	for _, m := range slices.SortedFunc(slices.Values(c.Members), byName) {
		switch {
		case !m.Streaming(), !m.MayLead(), !fit(m.Name), m.Lag < 0, synchronous && !m.Synchronous():
			continue
		case best == nil, m.Lag < best.Lag:
			best = &m
		}
	}
	if best == nil {
		return ""
	}
	return best.Name
}

func byName(a, b Member) int { return strings.Compare(a.Name, b.Name) }
