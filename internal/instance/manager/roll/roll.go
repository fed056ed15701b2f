package roll

import (
	"slices"
)

// MaxRestarts is how often a server is restarted for one change of the claim. If a parameter
// still needs a restart then, a user has to find out why.
const MaxRestarts = 3

// Server is a pod of the cluster, or the place of one.
type Server struct {
	Pod     string
	Ordinal int

	// Exists is true if the pod exists, and Deleting if it is being deleted.
	Exists, Deleting bool

	Ready    bool
	Outdated bool

	// Streaming, Synchronous and LagBytes are the primary's current view of a standby.
	Streaming, Synchronous bool
	LagBytes               int64

	// Joining is true for a standby that is being brought up to date, or copies another server, and counts among those of which
	// a majority acknowledges writes. It is never true with an engine whose standbys have no such state.
	Joining bool

	// Unfit is true for a standby that cannot become the primary, whatever it has received, because of the versions that the
	// servers run.
	Unfit bool

	// Restart is true if a parameter needs a restart.
	Restart bool

	// Tried is how many restarts were tried, and Restarted how many of them were done.
	Tried, Restarted int
}

// Cluster is the cluster as observed beside its primary.
type Cluster struct {
	Primary string
	Size    int

	Synchronous, Hibernated bool

	// Replace is true if this package may replace pods, and it is known which are outdated.
	Replace bool

	// Hold is true if no server may be restarted for a parameter.
	Hold bool

	// LagBytes is how far a standby may be behind.
	LagBytes int64

	// Servers are sorted by ordinal, with one for each ordinal below Size.
	Servers []Server
}

// Verb is what a Step does.
type Verb int

// The verbs.
const (
	Wait Verb = iota
	HandOver
	Replace
	Restart
)

// Step is the step to take next. Message describes what is being done or waited for, and is
// empty if nothing is.
type Step struct {
	Verb    Verb
	Pod     string
	Message string

	// Stuck is a server that still needs a restart after all restarts that it may have.
	Stuck string
}

// Next returns the next step.
func Next(c Cluster) Step {
	primary := c.server(c.Primary)
	switch {
	case c.Hibernated, primary == nil:
		return Step{}
	case primary.Ordinal >= c.Size:
		return c.handOver()
	}
	if c.Replace {
		if s := c.broken(); s != nil {
			return Step{Verb: Replace, Pod: s.Pod, Message: "Replacing " + s.Pod}
		}
		if s := c.outdated(); s != nil {
			if left := c.removed(); c.Size == 1 && left != nil {
				// No server that stays could take over, and the others are about to stop too.
				return Step{Message: "Waiting for " + left.Pod + " to be removed"}
			}
			return c.step(Replace, s, "Replacing "+s.Pod)
		}
	}
	s, stuck := c.pending()
	if s == nil || c.Hold {
		return Step{Stuck: stuck}
	}
	step := c.step(Restart, s, "Restarting "+s.Pod)
	step.Stuck = stuck
	return step
}

// handOver returns the step that moves the primary away from a server that is about to be
// removed.
func (c Cluster) handOver() Step {
	var best *Server
	for i := range c.Servers {
		s := &c.Servers[i]
		if s.Joining {
			// MySQL refuses a hand-over meanwhile.
			return Step{Message: "Waiting for " + s.Pod + ", which joins, to hand over from " + c.Primary}
		}
		fit := s.Ordinal < c.Size && c.follows(s) && s.Ready && !s.Unfit && (!c.Synchronous || s.Synchronous)
		if fit && (best == nil || better(s, best)) {
			best = s
		}
	}
	if best == nil {
		return Step{Message: "Waiting for a standby that can take over from " + c.Primary}
	}
	return Step{Verb: HandOver, Pod: best.Pod, Message: "Handing over to " + best.Pod}
}

// better reports whether a is the better new primary: the one that need not be replaced soon,
// then the one that is less behind.
func better(a, b *Server) bool {
	if a.Outdated != b.Outdated {
		return b.Outdated
	}
	return a.LagBytes < b.LagBytes
}

// broken returns an outdated standby that is not ready, or nil. It is replaced whatever else
// is broken, since otherwise a broken change could not be corrected by another one. A standby
// that streams nevertheless may be the one that acknowledges writes, so it is replaced only
// while the others exist and stream too. So is one that joins: two of them that left at once could take the majority with them.
func (c Cluster) broken() *Server {
	calm := c.all(func(s *Server) bool { return s.Pod == c.Primary || c.follows(s) })
	for _, s := range slices.Backward(c.within()) {
		if s.Pod == c.Primary || !s.Exists || s.Deleting || s.Ready || !s.Outdated {
			continue
		}
		others := c.all(func(o *Server) bool { return o.Pod == s.Pod || o.Pod == c.Primary || c.follows(o) })
		if s.Joining && others || !s.Joining && !s.Streaming || calm {
			return s
		}
	}
	return nil
}

// outdated returns the last of the outdated standbys, then the primary.
func (c Cluster) outdated() *Server {
	return c.last(func(s *Server) bool { return s.Exists && s.Outdated })
}

// pending returns the server to restart next, and one that is stuck. Of the servers that were
// restarted least often, it is the last standby, then the primary. A standby that still needs
// a restart after one may need the primary's first, as it does when a limit was lowered, and
// does not block the others. A server that was tried too often blocks them unless it was
// restarted, and is stuck in both cases.
func (c Cluster) pending() (*Server, string) {
	var stuck string
	least := MaxRestarts
	for _, s := range c.within() {
		switch {
		case !s.Exists, !s.Restart:
		case s.Tried < MaxRestarts:
			least = min(least, s.Restarted)
		case s.Restarted == 0:
			return nil, s.Pod
		default:
			stuck = s.Pod
		}
	}
	return c.last(func(s *Server) bool {
		return s.Exists && s.Restart && s.Tried < MaxRestarts && s.Restarted == least
	}), stuck
}

// last returns the last standby for which is holds, or else the primary if it holds for that,
// or nil.
func (c Cluster) last(is func(*Server) bool) *Server {
	for _, s := range slices.Backward(c.within()) {
		if s.Pod != c.Primary && is(s) {
			return s
		}
	}
	if s := c.server(c.Primary); is(s) {
		return s
	}
	return nil
}

// step returns the step if the cluster is healthy, or else one that waits for that.
func (c Cluster) step(verb Verb, s *Server, words string) Step {
	if unwell := c.unwell(); unwell != "" {
		return Step{Message: unwell}
	}
	return Step{Verb: verb, Pod: s.Pod, Message: words}
}

// unwell returns why no server may be stopped now, or "". A primary that is about to be
// replaced need not be ready.
func (c Cluster) unwell() string {
	for _, s := range c.within() {
		standby := s.Pod != c.Primary
		switch {
		case s.Deleting:
			return "Waiting for " + s.Pod + " to stop"
		case !s.Exists:
			return "Waiting for " + s.Pod + " to start"
		case standby && !s.Streaming:
			return "Waiting for " + s.Pod + " to follow the primary"
		case standby && s.LagBytes > c.LagBytes:
			return "Waiting for " + s.Pod + " to catch up"
		case !s.Ready && !s.Outdated:
			return "Waiting for " + s.Pod + " to be ready"
		case !s.Ready && standby:
			return "Waiting for " + s.Pod + " to be ready"
		case c.Synchronous && standby && !s.Synchronous:
			// Patroni adds a standby to the synchronous ones a few seconds after it has
			// connected. The next primary takes over that set. If it contained only the server
			// that hands over, writes would wait for it.
			return "Waiting for " + s.Pod + " to be synchronous"
		}
	}
	return ""
}

// follows reports whether a standby exists and is up to date.
func (c Cluster) follows(s *Server) bool {
	return s.Pod != c.Primary && s.Exists && !s.Deleting && s.Streaming && s.LagBytes <= c.LagBytes
}

// Spare reports whether a standby other than the next primary can serve clients that read.
func (c Cluster) Spare(next string) bool {
	return slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Pod != next && s.Ready && c.follows(&s) })
}

// within returns the servers that stay.
func (c Cluster) within() []*Server {
	var servers []*Server
	for i := range c.Servers {
		if c.Servers[i].Ordinal < c.Size {
			servers = append(servers, &c.Servers[i])
		}
	}
	return servers
}

// removed returns the last server that exists and does not stay, or nil.
func (c Cluster) removed() *Server {
	for i := range c.Servers {
		if s := &c.Servers[len(c.Servers)-1-i]; s.Exists && s.Ordinal >= c.Size {
			return s
		}
	}
	return nil
}

func (c Cluster) all(is func(*Server) bool) bool {
	return !slices.ContainsFunc(c.within(), func(s *Server) bool { return !is(s) })
}

func (c Cluster) server(pod string) *Server {
	i := slices.IndexFunc(c.Servers, func(s Server) bool { return s.Pod == pod })
	if i < 0 {
		return nil
	}
	return &c.Servers[i]
}
