package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

const (
	// desertedFor is how long a member is alone with its view before it is started again: MySQL takes 15 s to notice
	// that it has lost a majority, and to leave.
	desertedFor = 20 * time.Second

	// killWithin is how long a program may take to end that is killed.
	killWithin = 10 * time.Second
)

// desert ends a member that is alone with its view, and reports whether it did. It is started again, and joins the group of
// the others or decides with them who leads. They would wait for it without end, and clients would read what is old. Nothing is
// lost: MySQL restores at its start what it has committed.
func (s *Supervisor) desert(ctx context.Context, own *group.Report) (bool, error) {
	if s.process == nil || time.Since(s.compared) < tendPeriod {
		return false, nil
	}
	s.compared = time.Now()
	others := s.others(own)
	if len(others) == 0 || !group.Deserted(own, s.outside.Peers(ctx, others...)) {
		s.desertedSince = time.Time{}
		return false, nil
	}
	if s.desertedSince.IsZero() {
		s.desertedSince = time.Now()
	}
	if time.Since(s.desertedSince) < desertedFor {
		return false, nil
	}
	s.log.Info("Starting MySQL again: the other members of its view report that they are in no group with it, and it has not noticed", "view", own.View)
	s.setLeads(false)
	s.desertedSince = time.Time{}
	if err := s.process.Kill(); err != nil {
		return true, fmt.Errorf("cannot end MySQL, whose group communication has stopped: %w", err)
	}
	select {
	case <-s.process.Done():
		return true, nil
	case <-time.After(killWithin):
		return true, fmt.Errorf("cannot end MySQL, whose group communication has stopped: it runs %s after it was killed", killWithin)
	}
}
