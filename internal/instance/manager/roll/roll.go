package roll

import (
	"slices"
)

// MaxRestarts of a server for one change of the claim. A parameter that still
// waits then needs somebody.
const MaxRestarts = 3

// Server is a pod of the cluster, or the place of one.
type Server struct {
	Pod     string
	Ordinal int

	// Exists, and is on its way out.
	Exists, Deleting bool

	Ready    bool
	Outdated bool

	// Streaming, Synchronous and LagBytes are what the primary says of a
	// standby right now.
	Streaming, Synchronous bool
	LagBytes               int64

	// Restart says that a parameter waits for one.
	Restart bool

	// Tried restarts, and those of them that were done.
	Tried, Restarted int
}

// Cluster as seen from beside its primary.
type Cluster struct {
	Primary string
	Size    int

	Synchronous, Hibernated bool

	// Replace says that pods are ours to replace, and that it is known which
	// are outdated.
	Replace bool

	// Hold says that no server may be restarted for a parameter.
	Hold bool

	// LagBytes that a standby may be behind.
	LagBytes int64

	// Servers by ordinal, with one for each below Size.
	Servers []Server
}

// Verb of a Step.
type Verb int

// The verbs.
const (
	Wait Verb = iota
	HandOver
	Replace
	Restart
)

// Step to take next. Words say what is under way, and are empty when nothing
// is.
type Step struct {
	Verb  Verb
	Pod   string
	Words string

	// Stuck is the server that still waits after all restarts it may have.
	Stuck string
}

// Next step.
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
			return Step{Verb: Replace, Pod: s.Pod, Words: "Replacing " + s.Pod}
		}
		if s := c.outdated(); s != nil {
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

// handOver the primary that is about to go.
func (c Cluster) handOver() Step {
	var best *Server
	for i := range c.Servers {
		s := &c.Servers[i]
		fit := s.Ordinal < c.Size && c.follows(s) && s.Ready && (!c.Synchronous || s.Synchronous)
		if fit && (best == nil || better(s, best)) {
			best = s
		}
	}
	if best == nil {
		return Step{Words: "Waiting for a standby that can take over from " + c.Primary}
	}
	return Step{Verb: HandOver, Pod: best.Pod, Words: "Handing over to " + best.Pod}
}

// better is who need not be replaced soon, then who is less behind.
func better(a, b *Server) bool {
	if a.Outdated != b.Outdated {
		return b.Outdated
	}
	return a.LagBytes < b.LagBytes
}

// broken is an outdated standby that is not ready: it is replaced whatever else
// is broken, or else a broken change could not be put right by another. One
// that streams none the less may be what acknowledges writes, so it has its turn
// only while the others are there and stream too.
func (c Cluster) broken() *Server {
	calm := c.all(func(s *Server) bool { return s.Pod == c.Primary || c.follows(s) })
	for _, s := range slices.Backward(c.within()) {
		if s.Pod == c.Primary || !s.Exists || s.Deleting || s.Ready || !s.Outdated {
			continue
		}
		if !s.Streaming || calm {
			return s
		}
	}
	return nil
}

// outdated is the last of the outdated standbys, then the primary.
func (c Cluster) outdated() *Server {
	return c.last(func(s *Server) bool { return s.Exists && s.Outdated })
}

// pending is the server to restart next: the one restarted least often, of
// those the last standby, then the primary. A standby that still waits after a
// restart may wait for the primary's, as it does when a limit was lowered, and
// holds nobody up. One that was tried too often does, unless it was restarted;
// either way it is stuck.
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

// last standby of a kind, or else the primary if it is.
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

// step is taken when all is well, and waits for it otherwise.
func (c Cluster) step(verb Verb, s *Server, words string) Step {
	if unwell := c.unwell(); unwell != "" {
		return Step{Words: unwell}
	}
	return Step{Verb: verb, Pod: s.Pod, Words: words}
}

// unwell says in words why nothing may be taken away from the cluster now, or
// "". A primary that is about to be replaced need not be ready.
func (c Cluster) unwell() string {
	for _, s := range c.within() {
		standby := s.Pod != c.Primary
		switch {
		case s.Deleting:
			return "Waiting for " + s.Pod + " to stop"
		case !s.Exists:
			return "Waiting for " + s.Pod + " to start"
		case standby && !s.Streaming:
			return "Waiting for " + s.Pod + " to stream"
		case standby && s.LagBytes > c.LagBytes:
			return "Waiting for " + s.Pod + " to catch up"
		case !s.Ready && !s.Outdated:
			return "Waiting for " + s.Pod + " to be ready"
		case !s.Ready && standby:
			return "Waiting for " + s.Pod + " to be ready"
		case c.Synchronous && standby && !s.Synchronous:
			// Patroni counts a standby in a few seconds after it has come. A
			// primary takes over who counts: were that only the server that
			// hands over, writes would wait for it.
			return "Waiting for " + s.Pod + " to be synchronous"
		}
	}
	return ""
}

// follows says whether a standby is there and up to date.
func (c Cluster) follows(s *Server) bool {
	return s.Pod != c.Primary && s.Exists && !s.Deleting && s.Streaming && s.LagBytes <= c.LagBytes
}

// within are the servers that stay.
func (c Cluster) within() []*Server {
	var servers []*Server
	for i := range c.Servers {
		if c.Servers[i].Ordinal < c.Size {
			servers = append(servers, &c.Servers[i])
		}
	}
	return servers
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
