package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// formWithin is how long a standalone server may take to form its group.
const formWithin = 30 * time.Second

// form makes a standalone server the first member of its group, once the cluster is to have more servers.
func (s *Supervisor) form(ctx context.Context, own *group.Report, c *group.Cluster) error {
	if !own.Standalone {
		return nil
	}
	if c.Size, _ = s.Size(); group.Decide(*c).Verb != group.Form {
		return nil
	}
	s.log.Info("Executing action", "action", group.Form)
	ctx = context.WithoutCancel(ctx)
	err := s.server.Form(ctx)
	if err == nil {
		err = s.leadsGroup(ctx)
	}
	if err == nil {
		return nil
	}
	// Another server may be in the group already, and lead it: this one asks the others next, as at its start.
	s.setLeads(false)
	return errors.Join(err, s.server.Leave(ctx))
}

// leadsGroup waits until the server is the primary of the group that it has formed. It keeps its mark meanwhile, and
// clients wait.
func (s *Supervisor) leadsGroup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, formWithin)
	defer cancel()
	for {
		if own, err := s.Report(ctx); err == nil && own.State == group.Online && own.Primary && !own.Standalone {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("cannot form the group: this server does not become its primary in time")
		case <-time.After(period / 10):
		}
	}
}
