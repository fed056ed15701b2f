package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// decide takes the step that package group decides.
func (s *Supervisor) decide(ctx context.Context, own *group.Report) error {
	c, err := s.outside.Cluster(ctx)
	if err != nil {
		return err
	}
	c.Pod, c.Suspected = s.Pod, s.suspected
	// The others are asked after this server was observed: what the primary reports is newer than
	// what this server has received.
	c.Reports = s.outside.Peers(ctx)
	c.Reports[s.Pod] = *own
	action := group.Decide(c)
	s.suspected++
	if !action.Suspect {
		s.suspected = 0
	}
	if action.Verb != group.Stay {
		s.log.Info("Next", "action", action.Verb)
	}
	s.say(action.Message)
	return s.act(ctx, action, &c)
}

func (s *Supervisor) act(ctx context.Context, action group.Action, c *group.Cluster) error {
	switch action.Verb {
	case group.Stay:
		return nil
	case group.Initialize:
		return mysqld.Initialize(ctx, s.Program, s.Files, s.Options, s.output)
	case group.InitializeCopy:
		if err := s.Files.BeginCopy(); err != nil {
			return err
		}
		return mysqld.Initialize(ctx, s.Program, s.Files, s.Options, s.output)
	case group.Bootstrap:
		return s.bootstrap(ctx, action, c)
	case group.Join, group.JoinByCopy:
		return s.join(ctx, action.Verb == group.JoinByCopy, c)
	case group.Leave:
		return s.server.Leave(ctx)
	case group.SetAside:
		return s.setAside(ctx, action)
	}
	return fmt.Errorf("cannot %s: there is no such action", action.Verb)
}

// bootstrap founds a group. Clients can connect only after the record still has this server as the
// founder: another one may have been named to lead meanwhile.
func (s *Supervisor) bootstrap(ctx context.Context, action group.Action, c *group.Cluster) error {
	mine := c.Record
	mine.Epoch, mine.Founder, mine.Confirmed = mine.Epoch+1, s.Pod, false
	if action.Rename {
		mine.Name = uuid.NewString()
	}
	if err := s.outside.Change(ctx, c.Record, mine); err != nil {
		return err
	}
	if err := s.server.Bootstrap(ctx, s.membership(mine.Name, c)); err != nil {
		return errors.Join(err, s.server.Leave(ctx))
	}
	confirmed := mine
	confirmed.Confirmed, confirmed.Members = true, []string{s.Pod}
	if err := s.outside.Change(ctx, mine, confirmed); err != nil {
		return errors.Join(err, s.server.Leave(ctx))
	}
	return s.open(ctx)
}

// open lets clients in. A new primary may refuse that for a moment, so it is tried again by tend.
func (s *Supervisor) open(ctx context.Context) error {
	if s.opened {
		return nil
	}
	err := s.server.Open(ctx)
	s.opened = err == nil
	return err
}

// join joins the group once the record has this server as a member: if all stop after that, it is
// waited for.
func (s *Supervisor) join(ctx context.Context, byCopy bool, c *group.Cluster) error {
	if !slices.Contains(c.Record.Members, s.Pod) {
		with := c.Record
		with.Members = append(slices.Clone(with.Members), s.Pod)
		slices.Sort(with.Members)
		if err := s.outside.Change(ctx, c.Record, with); err != nil {
			return err
		}
	}
	return s.server.Join(ctx, s.membership(c.Record.Name, c), byCopy)
}

// setAside sets the data aside, so that the next pass copies a member.
func (s *Supervisor) setAside(ctx context.Context, action group.Action) error {
	if err := s.end(ctx); err != nil {
		return err
	}
	where, err := s.Files.SetAside(time.Now())
	if err != nil {
		return err
	}
	s.log.Info("The data is set aside, since it "+action.Message, "folder", where)
	return nil
}

// tend does what a member of a group has to do besides: the founder lets clients in if it was
// interrupted before, and the primary removes from the record what has left the group.
func (s *Supervisor) tend(ctx context.Context, own *group.Report) error {
	s.say("")
	if own.State != group.Online || !own.Primary {
		s.opened = false
		return nil
	}
	c, err := s.outside.Cluster(ctx)
	if err != nil {
		return nil //nolint:nilerr // a primary goes on without the API server
	}
	switch {
	case !c.Record.Confirmed && c.Record.Founder == s.Pod && own.Group == c.Record.Name:
		confirmed := c.Record
		confirmed.Confirmed, confirmed.Members = true, []string{s.Pod}
		if err := s.outside.Change(ctx, c.Record, confirmed); err != nil {
			return err
		}
	case own.Group != c.Record.Name:
		// Another server was named to lead while this one was cut off.
		s.say("Leaving group " + own.Group + ": the group of this cluster is " + c.Record.Name)
		return s.server.Leave(ctx)
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.forget(ctx, own, &c)
}

// forget removes from the record the servers that are gone for good: those that are not desired any
// more, or have no volume. Another one that is away stays in it, since it may have been the last that
// acknowledged a write in a group that had shrunk to it.
func (s *Supervisor) forget(ctx context.Context, own *group.Report, c *group.Cluster) error {
	var in []string
	for _, m := range own.Members {
		in = append(in, s.outside.PodOf(m.Address))
	}
	gone := func(pod string) bool {
		exists := slices.ContainsFunc(c.Volumes, func(v group.Volume) bool { return v.Pod == pod })
		return !slices.Contains(in, pod) && (!exists || c.Ordinal(pod) >= c.Size)
	}
	left := c.Record
	left.Members = slices.DeleteFunc(slices.Clone(c.Record.Members), gone)
	if len(left.Members) == len(c.Record.Members) {
		return nil
	}
	return s.outside.Change(ctx, c.Record, left)
}
