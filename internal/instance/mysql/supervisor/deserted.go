package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

const (
	// comparePeriod is how often a member compares its view with what the others report.
	comparePeriod = 5 * time.Second

	// desertedTimes and deceivedTimes are how often in a row a member is found to be deserted or deceived before it is
	// started again: 20 and 60 s. MySQL takes 15 s to notice that it has lost a majority, and to leave, and a server may
	// take 30 s to leave. A primary that is deceived, like others, waits for longer: if they communicate, it has another view
	// once one of them was started again.
	desertedTimes = 5
	deceivedTimes = 13
	primaryTimes  = 16

	// killWithin is how long a program may take to end that is killed.
	killWithin = 10 * time.Second
)

// comparison counts how often in a row a member was found to be deserted or deceived, with one view.
type comparison struct {
	view               string
	at                 time.Time
	deserted, deceived int
}

// add adds a comparison, and reports whether group communication has stopped by that. A comparison that was due is missing
// if this supervisor was frozen.
func (c *comparison) add(own *group.Report, others map[string]group.Report, at time.Time) bool {
	if own.View != c.view || at.Sub(c.at) > 3*comparePeriod {
		*c = comparison{view: own.View}
	}
	c.at = at
	c.deserted = inRow(c.deserted, group.Deserted(own, others))
	c.deceived = inRow(c.deceived, group.Deceived(own, others))
	deceived := deceivedTimes
	if own.Primary {
		deceived = primaryTimes
	}
	return c.deserted >= desertedTimes || c.deceived >= deceived
}

func inRow(times int, again bool) int {
	if again {
		return times + 1
	}
	return 0
}

// compare notes whether group communication of this server has stopped, beside the passes: another server that does not
// answer would hold them up.
func (s *Supervisor) compare(ctx context.Context) {
	c := comparison{}
	for {
		if !pause(ctx, comparePeriod) {
			return
		}
		own, err := s.Report(ctx)
		view := ""
		if err == nil && own.Joined() && c.add(&own, s.reports(ctx, &own), time.Now()) {
			view = own.View
		}
		s.setStuck(view)
	}
}

// reports returns the reports of the other members that answer, by their addresses.
func (s *Supervisor) reports(ctx context.Context, own *group.Report) map[string]group.Report {
	others := s.others(own)
	if len(others) == 0 {
		return nil
	}
	peers, reports := s.outside.Peers(ctx, others...), map[string]group.Report{}
	for _, m := range own.Members {
		if r, answers := peers[s.outside.PodOf(m.Address)]; answers {
			reports[m.Address] = r
		}
	}
	return reports
}

// restart ends a member whose group communication has stopped, and reports whether it did. It is started again, and
// joins the group of the others or decides with them who leads. They would wait for it without end, and clients would read
// what is old. Nothing is lost: MySQL restores at its start what it has committed.
func (s *Supervisor) restart(own *group.Report) (bool, error) {
	if s.process == nil || own.View == "" || own.View != s.stuckIn() {
		return false, nil
	}
	if ended, _ := s.process.Ended(); ended {
		return true, nil
	}
	const cause = "its group communication had stopped"
	s.log.Info("Starting MySQL again: it shows members that report that they are not in its view", "view", own.View)
	s.setLeads(false)
	s.ends = "MySQL was ended, since " + cause
	if err := s.process.Kill(); err != nil {
		return true, fmt.Errorf("cannot end MySQL, since %s: %w", cause, err)
	}
	select {
	case <-s.process.Done():
		return true, nil
	case <-time.After(killWithin):
		return true, fmt.Errorf("cannot end MySQL, since %s: it runs %s after it was killed", cause, killWithin)
	}
}

// stuckIn returns the view in which group communication of this server has stopped, or "".
func (s *Supervisor) stuckIn() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stuck
}

func (s *Supervisor) setStuck(view string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = view
}
