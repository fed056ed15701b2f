package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// formAgain is the pause before a group is to be formed again that a long statement has held up.
const formAgain = 30 * time.Second

// setAlone notes whether this supervisor has the server take writes without a group, and returns what it noted before. That
// it is writable is no sign: one that leaves a group is so for a moment.
func (s *Supervisor) setAlone(alone bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.alone
	s.alone = alone
	return before
}

// standalone has a report be that of a standalone server, if the server is one.
func (s *Supervisor) standalone(own *group.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.Standalone = own.Standalone && s.alone; own.Standalone {
		own.Alone(s.outside.Address(s.Pod))
	}
}

// leave leaves the group. A standalone server has none that would refuse writes, and ends the sessions of its clients first.
func (s *Supervisor) leave(ctx context.Context) error {
	var err error
	if s.setAlone(false) {
		err = s.server.Shut(ctx)
	}
	return errors.Join(err, s.server.Leave(ctx))
}

// form has a standalone server found a group, once the cluster is to have more servers. It takes no writes from before it
// founds the group until that is confirmed, as at its start: another server may have been named to lead meanwhile.
func (s *Supervisor) form(ctx context.Context, own *group.Report) error {
	if !own.Standalone {
		return nil
	}
	if size, _ := s.Size(); size < 2 {
		s.say("")
		return nil
	}
	if time.Since(s.heldUp) < formAgain {
		return nil
	}
	c, err := s.outside.Cluster(ctx)
	if err != nil {
		return err
	}
	c.Pod, c.Reports, c.Named = s.Pod, map[string]group.Report{s.Pod: *own}, ""
	if group.Decide(c).Verb != group.Form {
		s.say("")
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	refuses, err := s.server.Refuse(ctx)
	if err != nil {
		return err
	}
	if !refuses {
		s.heldUp = time.Now()
		s.say("Waiting for a statement that writes to end, before this server forms a group for the others to join")
		return nil
	}
	s.say("")
	s.log.Info("Executing action", "action", group.Form)
	s.opened = false
	if err := s.bootstrap(ctx, false, &c); err != nil {
		s.setLeads(false)
		return err
	}
	return nil
}
