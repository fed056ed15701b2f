package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// demote ends the sessions of clients at a server that was the primary: they would stay with one that takes no more writes. It
// refuses new ones until proxies have had time to lead them to the next primary. It reports whether the pod is not to be
// marked as a replica's yet.
func (s *Supervisor) demote(ctx context.Context, own *group.Report) (bool, error) {
	if s.marked != nil && *s.marked && demoted(own) {
		if err := s.server.Shut(ctx); err != nil {
			return true, fmt.Errorf("cannot end the sessions of clients: %w", err)
		}
		s.log.Info("This server is not the primary any more, and has ended the sessions of clients")
		s.marked, s.demoted = nil, time.Now()
	}
	switch {
	case s.demoted.IsZero():
		return false, nil
	case !own.Joined():
		// It lets clients in once it joins a group, or leads.
		s.demoted = time.Time{}
		return false, nil
	case !own.Primary && time.Since(s.demoted) < refuseFor:
		return true, nil
	}
	if err := s.server.Admit(ctx); err != nil {
		return !own.Primary, fmt.Errorf("cannot let clients in: %w", err)
	}
	s.demoted = time.Time{}
	return false, nil
}

// demoted reports whether a server that was the primary is not any more: it has left the group, or has another member for the
// primary. One that does not answer may be.
func demoted(own *group.Report) bool {
	if !own.Joined() {
		return own.Running
	}
	return !own.Primary && slices.ContainsFunc(own.Members, func(m group.Member) bool {
		return m.Primary && m.State == group.Online
	})
}
