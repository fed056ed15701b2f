package report

import (
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
)

// Follower is a standby as the primary sees it.
type Follower struct {
	// Streaming is true while the standby is connected, and Synchronous if it may acknowledge a
	// write.
	Streaming, Synchronous bool

	// Lag is how far the standby is behind what the primary has written: bytes that are not
	// replayed, or what an engine has instead, in a unit of which instance.LagBytes is much.
	Lag int64
}

// lagFor is how long a standby has to lag, or not, before that is reported.
const lagFor = 10 * time.Second

// Lags records which standbys lag.
type Lags struct{ of map[string]lag }

type lag struct {
	lagging bool

	// since is since when its lag has been on the other side of the threshold, or zero.
	since time.Time
}

// Standbys returns the standbys of the pods, which are all but the primary's, given the
// connections to the primary.
func (l *Lags) Standbys(pods []string, primary string, followers map[string]Follower, now time.Time) []instance.Standby {
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

// Joined marks as New the standbys that have not followed the primary's data yet, given the
// report before. The primary of that report is a standby after a failover. If the server that
// leads was not among its servers, or was named by a user, they may all have other data.
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

// observe returns the next state of a standby: it begins to lag once it was more than LagBytes
// behind for lagFor, and stops once it was less than half of that behind for as long.
func (l lag) observe(f Follower, now time.Time) lag {
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
