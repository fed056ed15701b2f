package report

import (
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// lagFor is how long a standby has to lag, or not, to be said to.
const lagFor = 10 * time.Second

// Lags remembers which standbys lag.
type Lags struct{ of map[string]lag }

type lag struct {
	lagging bool

	// since when it has looked different, or zero.
	since time.Time
}

// Standbys of the pods other than the primary's, given what is connected.
func (l *Lags) Standbys(pods []string, primary string, followers map[string]postgres.Follower, now time.Time) []instance.Standby {
	var standbys []instance.Standby
	next := map[string]lag{}
	for _, pod := range pods {
		if pod == primary {
			continue
		}
		f := followers[pod]
		next[pod] = l.of[pod].observe(f, now)
		standbys = append(standbys, instance.Standby{
			Name: pod, Streaming: f.Streaming, Synchronous: f.Streaming && f.Synchronous, Lagging: f.Streaming && next[pod].lagging,
		})
	}
	l.of = next
	slices.SortFunc(standbys, func(a, b instance.Standby) int { return strings.Compare(a.Name, b.Name) })
	return standbys
}

// Joined marks the standbys New that have not followed the primary's data yet, given
// the report before. Its primary is a standby after a failover. Where a server leads
// that was none of them, or that a user has named, they may have other data than it.
func Joined(primary string, standbys []instance.Standby, before *instance.Cluster, named bool) []instance.Standby {
	joined := map[string]bool{before.Primary: true}
	for _, s := range before.Standbys {
		joined[s.Name] = !s.New
	}
	if named || before.Primary != "" && !joined[primary] {
		joined = nil
	}
	standbys = slices.Clone(standbys)
	for i, s := range standbys {
		standbys[i].New = !s.Streaming && !joined[s.Name]
	}
	return standbys
}

// observe a standby: one lags when it was more than LagBytes behind for a
// while, and does no more when it was less than half of that for as long.
func (l lag) observe(f postgres.Follower, now time.Time) lag {
	if !f.Streaming {
		return lag{}
	}
	changed := f.Lag > instance.LagBytes
	if l.lagging {
		changed = f.Lag < instance.LagBytes/2
	}
	switch {
	case !changed:
		return lag{lagging: l.lagging}
	case l.since.IsZero():
		return lag{lagging: l.lagging, since: now}
	case now.Sub(l.since) >= lagFor:
		return lag{lagging: !l.lagging}
	}
	return l
}
