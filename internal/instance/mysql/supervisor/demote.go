package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// demotion is what a supervisor knows about the clients of a server that was the primary.
type demotion struct {
	// led is true from when the server leads until the sessions of its clients have ended.
	led bool

	// since is since when it refuses clients because it is not the primary any more, or zero. It does so until it is asked to
	// let them in, whatever happens in its group.
	since time.Time
}

// gate is what is done about clients.
type gate string

const (
	keep  gate = ""
	shut  gate = "shut"
	admit gate = "admit"
)

// due returns what is to be done about clients.
func (d *demotion) due(own *group.Report, now time.Time) gate {
	switch {
	case d.led && demoted(own):
		return shut
	case !d.since.IsZero() && own.Joined() && (own.Primary || now.Sub(d.since) >= refuseFor):
		return admit
	}
	return keep
}

// refuses reports whether a replica refuses clients, who are not to be led to it.
func (d *demotion) refuses(own *group.Report) bool {
	return !d.since.IsZero() && own.Joined() && !own.Primary
}

// demote ends the sessions of clients at a server that was the primary: they would stay with one that takes no more writes. It
// refuses new ones until proxies have had time to lead them to the next primary. No API server is needed for that.
func (s *Supervisor) demote(ctx context.Context, own *group.Report) error {
	if s.Leads() {
		s.demotion.led = true
	}
	switch s.demotion.due(own, time.Now()) {
	case keep:
	case shut:
		// It may refuse clients although its answer is lost.
		s.demotion.since = time.Now()
		if err := s.server.Shut(ctx); err != nil {
			return fmt.Errorf("cannot end the sessions of clients: %w", err)
		}
		s.log.Info("This server is not the primary any more, and has ended the sessions of clients")
		s.marked, s.demotion = nil, demotion{since: time.Now()}
		// The next primary may have marked it already.
		s.remark(ctx, s.Pod, instance.RoleReplica, "")
	case admit:
		if err := s.server.Admit(ctx); err != nil {
			return fmt.Errorf("cannot let clients in: %w", err)
		}
		s.demotion.since = time.Time{}
	}
	return nil
}

// demoted reports whether a server that was the primary is not any more: it has left the group, or another member is the
// primary. One that does not answer may be.
func demoted(own *group.Report) bool {
	if !own.Joined() {
		return own.Running
	}
	return !own.Primary && slices.ContainsFunc(own.Members, func(m group.Member) bool {
		return m.Primary && m.State == group.Online && m.Server != own.Server
	})
}
