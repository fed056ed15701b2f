package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// candidateWithin is how long a primary that stops waits for a member that can take over.
const candidateWithin = 20 * time.Second

// queueWithin is how long a server that is removed waits for others to leave the group before it.
const queueWithin = 20 * time.Second

const (
	// settleFor is how long the primary of a pod that is being deleted still takes writes before it hands over. By default
	// a kube-proxy writes changes once a second (minSyncPeriod,
	// https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/): that the pod ends in the first of the
	// Services that it is in, and in the others a second later. What comes before the second is over, like the new primary,
	// waits for another one, without writes.
	settleFor = 2 * time.Second

	// settleIn is the shortest grace period in which there is time for that.
	settleIn = 10 * time.Second
)

// stop hands over and stops the server. Nothing holds up the stop of a server that cannot hand over.
func (s *Supervisor) stop(ctx context.Context) error {
	if err := s.handOver(ctx); err != nil {
		s.log.Info("Cannot hand over", "error", err.Error())
		s.give(ctx)
	}
	s.queue(ctx)
	if s.process != nil {
		if err := s.server.Shut(ctx); err != nil {
			s.log.Info("Cannot end the sessions of clients", "error", err.Error())
		}
	}
	return s.end(ctx)
}

// queue waits until the servers that are removed with this one, and come after it, have left the group:
// if two left at once, the rest might wait for one that is gone.
func (s *Supervisor) queue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, queueWithin)
	defer cancel()
	c, err := s.outside.Cluster(ctx)
	if err != nil || c.Ordinal(s.Pod) < c.Size || s.ending(ctx) {
		return
	}
	for {
		own, err := s.Report(ctx)
		if err != nil || !slices.ContainsFunc(own.Members, func(m group.Member) bool {
			return c.Ordinal(s.outside.PodOf(m.Address)) > c.Ordinal(s.Pod)
		}) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(period / 2):
		}
	}
}

// give has the others elect a primary, since this one cannot choose one: it ends the sessions of its
// clients and leaves the group before it stops, which takes longer.
func (s *Supervisor) give(ctx context.Context) {
	err := s.server.Shut(ctx)
	if err == nil {
		err = s.leave(ctx)
	}
	if err != nil {
		s.log.Info("Cannot leave the group", "error", err.Error())
	}
}

// handOver makes another server the primary if this one is. There is none to hand over to if all
// stop. It is refused while a member is on its way into the group or out of it, so it is tried again.
func (s *Supervisor) handOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, candidateWithin)
	defer cancel()
	var refused error
	for settled := false; ; {
		own, err := s.Report(ctx)
		if err != nil {
			return err
		}
		if !own.Primary || s.ending(ctx) {
			return nil
		}
		to, waiting := s.candidate(ctx, &own)
		if to != nil && !settled && s.settle(ctx) {
			settled = true
			continue
		}
		if to != nil {
			s.log.Info("Handing over", "to", s.outside.PodOf(to.Address))
			if refused = s.server.HandOver(ctx, to.Server); refused == nil {
				s.log.Info("Handed over", "to", s.outside.PodOf(to.Address))
				return s.outside.Handed(ctx, s.outside.PodOf(to.Address))
			}
			s.log.Info("The hand-over is refused", "error", refused.Error())
		} else if !waiting {
			s.log.Info("There is no server to hand over to")
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("no server can take over in time"), refused)
		case <-time.After(period / 5):
		}
	}
}

// settle waits if clients would otherwise be led to the next primary late, and reports whether it did.
func (s *Supervisor) settle(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	if s.outside.Grace(within) < settleIn {
		return false
	}
	select {
	case <-ctx.Done():
	case <-time.After(settleFor):
	}
	return true
}

// ending reports whether all servers are about to stop, as far as the API server answers in time.
func (s *Supervisor) ending(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	return s.outside.Ending(ctx)
}

// candidate returns the member to hand over to: the first by ordinal that stays and has room. It returns nil and
// true if one is on its way into the group.
func (s *Supervisor) candidate(ctx context.Context, own *group.Report) (*group.Member, bool) {
	within, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	c, err := s.outside.Cluster(within)
	var pods []string
	members := map[string]*group.Member{}
	joining := false
	for i := range own.Members {
		m := &own.Members[i]
		pod := s.outside.PodOf(m.Address)
		if pod == s.Pod || err == nil && c.Ordinal(pod) >= c.Size || s.outside.Leaving(within, pod) {
			continue
		}
		if m.State == group.Online && own.MayLead(m) {
			pods, members[pod] = append(pods, pod), m
		}
		joining = joining || m.State == group.Recovering
	}
	switch len(pods) {
	case 0:
		return nil, joining
	case 1:
		return members[pods[0]], joining
	}
	reports := s.outside.Peers(ctx, pods...)
	return members[slices.MinFunc(pods, func(a, b string) int {
		first := 0
		if err == nil {
			first = c.Ordinal(a) - c.Ordinal(b)
		}
		return cmp.Or(reluctance(reports, a)-reluctance(reports, b), first)
	})], joining
}

// reluctance returns 0 for a server that can take writes as far as it reports, 1 for one that does not answer, and 2 for one
// whose volume is full.
func reluctance(reports map[string]group.Report, pod string) int {
	switch r, answers := reports[pod]; {
	case !answers:
		return 1
	case r.Full:
		return 2
	}
	return 0
}

// end stops the program, and kills it if it does not end in time.
func (s *Supervisor) end(ctx context.Context) error {
	if s.process == nil {
		return nil
	}
	defer func() { s.process = nil }()
	s.mu.Lock()
	s.answered = time.Time{}
	s.mu.Unlock()
	if err := s.process.Stop(); err != nil {
		return err
	}
	select {
	case <-s.process.Done():
		return nil
	case <-time.After(stopWithin):
	case <-ctx.Done():
	}
	s.log.Info("MySQL does not end in time, and is killed")
	err := s.process.Kill()
	<-s.process.Done()
	return err
}
