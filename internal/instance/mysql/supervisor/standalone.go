package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// formAgain is the pause before a group is to be formed again that a long statement has held up.
const formAgain = 30 * time.Second

// setAlone notes whether this supervisor has the server take writes without a group. That it is writable is no sign: one that
// leaves a group is so for a moment.
func (s *Supervisor) setAlone(alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alone = alone
}

func (s *Supervisor) isAlone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alone
}

func (s *Supervisor) setForming(forming bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forming = forming
}

// standalone has a report be that of a standalone server, if the server is one.
func (s *Supervisor) standalone(own *group.Report) {
	if own.Standalone = own.Standalone && s.isAlone(); own.Standalone {
		own.Alone(s.outside.Address(s.Pod))
	}
}

// leave leaves the group. A standalone server has none that would refuse writes, and ends the sessions of its clients first.
// It stays one until it refuses writes, so that what fails is tried again.
func (s *Supervisor) leave(ctx context.Context) error {
	var err error
	if s.isAlone() {
		err = s.server.Shut(ctx)
	}
	if err = errors.Join(err, s.server.Leave(ctx)); err == nil {
		s.setAlone(false)
	}
	return err
}

// form has a standalone server found a group, once the cluster is to have more servers. It takes no writes from before it
// founds the group until that is confirmed, as at its start: another server may have been named to lead meanwhile.
func (s *Supervisor) form(ctx context.Context, own *group.Report) error {
	if !own.Standalone {
		return nil
	}
	if s.Size() < 2 {
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
	if c.Named != "" && c.Named != instance.VolumeClaim(s.Pod) {
		s.say("Waiting to form a group for the others to join: volume claim " + c.Named + " is named to lead, and this server does. Remove the annotation that names it")
		return nil
	}
	c.Pod, c.Reports, c.Named = s.Pod, map[string]group.Report{s.Pod: *own}, ""
	if group.Decide(c).Verb != group.Form {
		s.say("")
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	refuses, err := s.server.Refuse(ctx)
	if err != nil || !refuses {
		s.heldUp = time.Now()
	}
	if err != nil {
		return err
	}
	if !refuses {
		s.say("Waiting for a statement that writes to end, before this server forms a group for the others to join")
		return nil
	}
	// From here on it is as at its start, but that it keeps its mark meanwhile.
	s.setAlone(false)
	s.say("")
	s.log.Info("Executing action", "action", group.Form)
	s.setForming(true)
	defer s.setForming(false)
	s.opened = false
	err = s.bootstrap(ctx, false, &c)
	if !s.opened {
		s.setLeads(false)
	}
	return err
}
