package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

const (
	// candidateWithin is how long a primary that stops waits for a member that can take over.
	candidateWithin = 20 * time.Second

	// settleFor is how long the primary of a pod that is being deleted still takes writes before it hands over, and answers
	// clients after that, by refusing them. By default a kube-proxy writes changes once a second (minSyncPeriod,
	// https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/), and the pod is in several Services. Which
	// server is the next primary would have to wait for that, without writes; and a client that is led to a server which
	// ends waits for an answer.
	settleFor = 2 * time.Second

	// unhurriedIn is the shortest grace period in which there is time for that.
	unhurriedIn = 10 * time.Second
)

// handOver makes another server the primary if this one is. There is none to hand over to if all
// stop. It is refused while a member is on its way into the group or out of it, so it is tried again.
func (s *Supervisor) handOver(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, candidateWithin)
	defer cancel()
	var refused error
	for settled := false; ; {
		own, err := s.Report(ctx)
		if err != nil {
			return false, err
		}
		if !own.Primary || s.ending(ctx) {
			return false, nil
		}
		to, waiting := s.candidate(ctx, &own)
		switch {
		case to == nil && !waiting:
			s.log.Info("There is no server to hand over to")
			return false, nil
		case to != nil && !settled && s.unhurried(ctx):
			settled = true
			s.settle(ctx, &own, s.outside.PodOf(to.Address))
			continue
		case to != nil:
			pod := s.outside.PodOf(to.Address)
			s.log.Info("Handing over", "to", pod)
			if refused = s.server.HandOver(ctx, to.Server); refused == nil {
				s.log.Info("Handed over", "to", pod)
				return true, s.outside.Handed(ctx, pod)
			}
			s.log.Info("The hand-over is refused", "error", refused.Error())
		}
		select {
		case <-ctx.Done():
			return false, errors.Join(errors.New("no server can take over in time"), refused)
		case <-time.After(period / 5):
		}
	}
}

// unhurried reports whether this server's pod is being deleted, and there is time.
func (s *Supervisor) unhurried(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	return s.outside.Grace(ctx) >= unhurriedIn
}

// settle waits until proxies have written what has changed, and can write at once which server is the next primary. It is
// no replica's by then, unless it is the only one: else two Services would change, and the one of the primary might be the
// second.
func (s *Supervisor) settle(ctx context.Context, own *group.Report, next string) {
	if slices.ContainsFunc(own.Members, func(m group.Member) bool {
		pod := s.outside.PodOf(m.Address)
		return m.State == group.Online && pod != s.Pod && pod != next
	}) {
		within, cancel := context.WithTimeout(ctx, outsideWithin)
		defer cancel()
		if err := s.outside.Unmark(within, next); err != nil {
			s.log.Info("Cannot lead clients away from the next primary", "pod", next, "error", err.Error())
		}
	}
	pause(ctx, settleFor)
}

// pause waits, or until the context ends.
func pause(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
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
