package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// tend does what a member of a group has to do besides: it leaves a group that is not the cluster's any
// more, the founder lets clients in if it was interrupted before, and the primary has the record say who
// its members are. Only a primary that the record has as a member leads: if it is lost it is waited for.
func (s *Supervisor) tend(ctx context.Context, own *group.Report) error {
	as := fmt.Sprint(own.State, own.Primary, own.Group, own.View, own.Members)
	if as == s.as && time.Since(s.tended) < tendPeriod {
		return nil
	}
	if !own.Standalone {
		s.say("")
	}
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	record, err := s.outside.Record(ctx)
	if err != nil {
		return fmt.Errorf("%w: %v", errAlone, err) //nolint:errorlint // no other error is looked for
	}
	c := group.Cluster{Pod: s.Pod, Reports: map[string]group.Report{s.Pod: *own}, Record: record}
	if err := s.rewrite(ctx, own, &c.Record); err != nil {
		return err
	}
	if action := group.Decide(c); action.Verb == group.Leave {
		s.setLeads(false)
		s.say(action.Message)
		return s.leave(context.WithoutCancel(ctx))
	}
	if err := s.enrollSelf(ctx, own, &c.Record); err != nil {
		return err
	}
	if own.State != group.Online || !own.Primary {
		s.opened = false
	} else if err := s.lead(ctx, own, &c); err != nil {
		return err
	}
	s.as, s.tended = as, time.Now()
	return nil
}

// rewrite writes the record again that this server knows, if it was lost, or replaced by an older one.
func (s *Supervisor) rewrite(ctx context.Context, own *group.Report, record *group.Record) error {
	switch {
	case record.Confirmed && record.Epoch >= s.record.Epoch:
		s.record = *record
		return nil
	case record.Name != "" && record.Epoch >= s.record.Epoch, s.record.Name != own.Group:
		return nil
	}
	s.log.Info("The record of the group was lost, and is written again", "epoch", s.record.Epoch)
	if err := s.outside.Change(ctx, *record, s.record); err != nil {
		return err
	}
	*record = s.record
	return nil
}

// lead does what the primary has to do.
func (s *Supervisor) lead(ctx context.Context, own *group.Report, c *group.Cluster) error {
	if !c.Record.Confirmed && c.Record.Founder == s.Pod && own.Group == c.Record.Name {
		all, err := s.outside.Cluster(ctx)
		if err != nil {
			return err
		}
		if all.Named != "" && all.Named != instance.VolumeClaim(s.Pod) {
			s.say("Leaving the group: volume claim " + all.Named + " is named to lead")
			return s.leave(context.WithoutCancel(ctx))
		}
		if err := s.confirm(ctx, c.Record, all.Named != ""); err != nil {
			return err
		}
		// The next pass reads what was written.
		return nil
	}
	if !c.Record.Confirmed || own.Group != c.Record.Name {
		return nil
	}
	if !s.agree(ctx, own, c) {
		if s.Leads() {
			// Supervisors that do not answer say nothing about their servers.
			return nil
		}
		return errDoubted
	}
	if err := s.enroll(ctx, own, c); err != nil {
		return err
	}
	if err := s.open(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.agreed = true
	s.mu.Lock()
	s.leads, s.epoch = true, c.Record.Epoch
	s.mu.Unlock()
	s.dismiss(ctx, own)
	return s.form(ctx, own)
}

var (
	errAlone   = errors.New("cannot compare the group with its record")
	errDoubted = errors.New("the other members do not agree that this server is the primary")
)

// agree reports whether a majority of this primary's view says that it is in that view: a server that
// is cut off, or was frozen, still has an old one.
func (s *Supervisor) agree(ctx context.Context, own *group.Report, c *group.Cluster) bool {
	reports, others := map[string]group.Report{}, s.others(own)
	if len(others) > 0 {
		reports = s.outside.Peers(ctx, others...)
	}
	reports[s.Pod] = *own
	p := group.Live(reports, c.Record.Name)
	return p != nil && p.Pod == s.Pod
}

// others returns the pods of the other members.
func (s *Supervisor) others(own *group.Report) []string {
	var others []string
	for _, m := range own.Members {
		if pod := s.outside.PodOf(m.Address); pod != s.Pod {
			others = append(others, pod)
		}
	}
	return others
}

// enrollSelf records this member if it has data of its own and is not recorded: the primary removes one that was away for a
// while, also just before it is in the view again, and adds none that may still copy another.
func (s *Supervisor) enrollSelf(ctx context.Context, own *group.Report, record *group.Record) error {
	if own.Data != group.Whole || own.Standalone || !record.Confirmed || own.Group != record.Name {
		return nil
	}
	return s.register(ctx, record, true)
}

// enroll has the record say who is in the primary's view. A member that is outside of it has
// acknowledged nothing that this server does not have, and is removed after a while.
func (s *Supervisor) enroll(ctx context.Context, own *group.Report, c *group.Cluster) error {
	in := map[string]group.State{}
	for _, m := range own.Members {
		in[s.outside.PodOf(m.Address)] = m.State
	}
	if slices.ContainsFunc(slices.Collect(maps.Keys(in)), func(pod string) bool { return c.Record.Members[pod] == "" && in[pod] == group.Online }) {
		all, err := s.outside.Cluster(ctx)
		if err != nil {
			return err
		}
		c.Volumes = all.Volumes
	}
	with := c.Record
	with.Members = s.members(in, c)
	if maps.Equal(with.Members, c.Record.Members) {
		return nil
	}
	if err := s.outside.Change(ctx, c.Record, with); err != nil {
		return err
	}
	s.record = with
	return nil
}

// dismiss removes members from the record at once that are not desired any more, have left the group, and whose
// pods end: this server would wait for their volumes if it was started again. What fails is left to enroll,
// which removes them later.
func (s *Supervisor) dismiss(ctx context.Context, own *group.Report) {
	if len(s.away) == 0 {
		return
	}
	all, err := s.outside.Cluster(ctx)
	if err != nil {
		return
	}
	with := all.Record
	with.Members = map[string]string{}
	for pod, uid := range all.Record.Members {
		away := !slices.ContainsFunc(own.Members, func(m group.Member) bool { return s.outside.PodOf(m.Address) == pod })
		if away && all.Ordinal(pod) >= all.Size && s.outside.Leaving(ctx, pod) {
			continue
		}
		with.Members[pod] = uid
	}
	if len(with.Members) == len(all.Record.Members) || all.Record.Name != own.Group {
		return
	}
	if s.outside.Change(ctx, all.Record, with) == nil {
		s.record = with
	}
}

// members returns the members that the record has to have, given the states of the pods in the primary's view. One that copies
// another server is not added before it is online; one that recovers with data of its own records itself.
func (s *Supervisor) members(in map[string]group.State, c *group.Cluster) map[string]string {
	members, away := map[string]string{}, map[string]time.Time{}
	for pod, uid := range c.Record.Members {
		since, known := s.away[pod]
		if !known {
			since = time.Now()
		}
		switch {
		case in[pod] != "":
			members[pod] = uid
		case time.Since(since) < awayFor:
			members[pod], away[pod] = uid, since
		}
	}
	for pod, state := range in {
		i := slices.IndexFunc(c.Volumes, func(v group.Volume) bool { return v.Pod == pod })
		switch {
		case pod == s.Pod:
			members[pod] = s.Claim
		case members[pod] == "" && i >= 0 && state == group.Online:
			members[pod] = c.Volumes[i].UID
		}
	}
	s.away = away
	return members
}
