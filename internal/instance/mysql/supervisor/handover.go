package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// candidateWithin is how long a primary that stops waits for a member that can take over.
const candidateWithin = 20 * time.Second

// handOver makes another server the primary if this one is, and reports whether it did. There is none to hand over to if
// all stop. It is refused while a member is on its way into the group or out of it, so it is tried again. Nothing holds up
// the stop of a server that cannot hand over.
func (s *Supervisor) handOver(ctx context.Context) (bool, error) {
	if own, err := s.Report(ctx); err != nil || !own.Primary {
		return err == nil && s.handed(&own), err
	}
	settles, within := s.left(ctx) >= instance.SettleIn, candidateWithin
	if settles {
		within += instance.SettleFor
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	unmarked := ""
	defer func() { s.remark(context.WithoutCancel(ctx), unmarked, "", instance.RoleReplica) }()
	var refused error
	for {
		own, err := s.Report(ctx)
		if err != nil {
			return false, err
		}
		if ctx.Err() == nil && !own.Primary || s.ending(ctx) {
			return s.handed(&own), nil
		}
		to, spare, waiting := s.candidate(ctx, &own)
		switch {
		case to == nil && !waiting:
			s.log.Info("There is no server to hand over to")
			return false, nil
		case to != nil && settles:
			settles = false
			if spare {
				unmarked = s.outside.PodOf(to.Address)
			}
			s.settle(ctx, unmarked)
		case to != nil:
			pod := s.outside.PodOf(to.Address)
			s.log.Info("Handing over", "to", pod)
			if refused = s.server.HandOver(ctx, to.Server); refused == nil {
				s.log.Info("Handed over", "to", pod)
				if pod == unmarked {
					unmarked = ""
				}
				// Clients that read are not led to a server that ends.
				return true, s.outside.Handed(ctx, pod)
			}
			s.log.Info("The hand-over is refused", "error", refused.Error())
		}
		if !pause(ctx, period/5) {
			return false, errors.Join(errors.New("no server can take over in time"), refused)
		}
	}
}

// Move makes another member the primary, by its pod, and this server stays. spare is true if a third server can serve clients
// that read meanwhile.
func (s *Supervisor) Move(ctx context.Context, pod string, spare bool) error {
	if _, err := s.heir(ctx, pod); err != nil {
		return err
	}
	unmarked := ""
	if spare {
		unmarked = pod
	}
	s.settle(ctx, unmarked)
	to, err := s.heir(ctx, pod)
	// The loop that has this server hand over ends once it leads no more, which is before the statement ends.
	ctx = context.WithoutCancel(ctx)
	if err == nil {
		err = s.server.HandOver(ctx, to.Server)
	}
	if err != nil {
		s.remark(ctx, unmarked, "", instance.RoleReplica)
		return err
	}
	return s.outside.Handed(ctx, pod)
}

// handed reports whether this server has handed over by Move a moment ago, so that proxies may still lead clients to it.
func (s *Supervisor) handed(own *group.Report) bool {
	return (s.demotion.led || s.demotion.refuses(own)) && demoted(own)
}

// heir returns the member of a pod, if this primary can hand over to it.
func (s *Supervisor) heir(ctx context.Context, pod string) (*group.Member, error) {
	own, err := s.Report(ctx)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("cannot hand over to %s: %w", pod, err)
	}
	if !own.Primary {
		return nil, fmt.Errorf("cannot hand over to %s: this server is not the primary", pod)
	}
	if i := slices.IndexFunc(own.Members, func(m group.Member) bool { return m.State != group.Online }); i >= 0 {
		// MySQL refuses it meanwhile.
		m := own.Members[i]
		return nil, fmt.Errorf("cannot hand over to %s while %s is %s", pod, s.outside.PodOf(m.Address), m.State)
	}
	to, _, _ := s.candidate(ctx, &own, pod)
	if to == nil {
		return nil, fmt.Errorf("cannot hand over to %s: it is not online in the group, not recorded as a member, or about to be removed", pod)
	}
	return to, nil
}

// left returns how much time this server's pod, which is being deleted, has left to end. It is not positive if the pod is not.
func (s *Supervisor) left(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	return s.outside.Grace(ctx) - time.Since(s.stopping)
}

// settle waits until proxies have written what has changed, and can write at once which server is the next primary. Its pod,
// if one is given, is not marked as a replica's by then: else two Services would change at the hand-over, and the one of the
// primary might be the second.
func (s *Supervisor) settle(ctx context.Context, next string) {
	s.remark(ctx, next, instance.RoleReplica, "")
	pause(ctx, instance.SettleFor)
}

// remark changes the mark of a pod, if one is given.
func (s *Supervisor) remark(ctx context.Context, pod, from, to string) {
	if pod == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	if err := s.outside.Remark(ctx, pod, from, to); err != nil {
		s.log.Info("Cannot change the mark of a pod", "pod", pod, "error", err.Error())
	}
}

// pause waits, and returns false if the context has ended.
func pause(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}

// ending reports whether all servers are about to stop, as far as the API server answers in time.
func (s *Supervisor) ending(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	return s.outside.Ending(ctx)
}

// candidate returns the member to hand over to, of some pods or of all if none are given: the first by ordinal that stays and
// has room. spare is true if another one could be, and waiting if one is on its way into the group.
func (s *Supervisor) candidate(ctx context.Context, own *group.Report, of ...string) (to *group.Member, spare, waiting bool) {
	within, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	c, err := s.outside.Cluster(within)
	var pods []string
	members := map[string]*group.Member{}
	for i := range own.Members {
		m := &own.Members[i]
		pod := s.outside.PodOf(m.Address)
		if pod == s.Pod || len(of) > 0 && !slices.Contains(of, pod) || err == nil && c.Ordinal(pod) >= c.Size || s.outside.Leaving(within, pod) {
			continue
		}
		if err == nil && c.Record.Ran() && c.Record.Members[pod] == "" {
			// If it were lost after it has led, the others would not wait for it.
			waiting = true
			continue
		}
		if m.State == group.Online && own.MayLead(m) {
			pods, members[pod] = append(pods, pod), m
		}
		waiting = waiting || m.State == group.Recovering
	}
	switch len(pods) {
	case 0:
		return nil, false, waiting
	case 1:
		return members[pods[0]], false, waiting
	}
	reports := s.outside.Peers(ctx, pods...)
	return members[slices.MinFunc(pods, func(a, b string) int {
		first := 0
		if err == nil {
			first = c.Ordinal(a) - c.Ordinal(b)
		}
		return cmp.Or(reluctance(reports, a)-reluctance(reports, b), first)
	})], true, waiting
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
