package supervisor

import (
	"context"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

const (
	// queueWithin is how long a server that is removed waits for others to leave the group before it.
	queueWithin = 20 * time.Second

	// refuseFor is how long a server that has handed over refuses clients before it ends: one that is led to it until
	// proxies have written which server is the primary would wait for an answer else.
	refuseFor = instance.SettleFor

	// refuseIn is how much of the pod's grace period there has to be for that.
	refuseIn = 15 * time.Second
)

// stop stops the server. One that has handed over answers clients for a little longer, if there is time.
func (s *Supervisor) stop(ctx context.Context, handed bool) error {
	s.queue(ctx)
	if s.process != nil {
		if err := s.server.Shut(ctx); err != nil {
			s.log.Info("Cannot end the sessions of clients", "error", err.Error())
		}
	}
	if handed && s.left(ctx) >= refuseIn {
		pause(ctx, refuseFor)
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
