package backup

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/storeplane/storeplane/internal/build"
)

// schedule is that of a CronJob, in its time zone.
type schedule struct {
	spec      string
	cron      cron.Schedule
	zone      *time.Location
	period    time.Duration
	suspended bool
}

func parseSchedule(spec, zone string, suspended bool) (schedule, error) {
	c, loc, err := build.ParseSchedule(spec, zone)
	if err != nil {
		return schedule{}, err
	}
	return schedule{spec: spec, cron: c, zone: loc, period: longest(c), suspended: suspended}, nil
}

// next returns the time of the next run after t.
func (s schedule) next(t time.Time) time.Time { return s.cron.Next(t.In(s.zone)).UTC() }

// epoch is the time from which periods are measured, so that they do not depend on the present
// time.
var epoch = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// longest examines at least samples runs, and at least the runs of the time window. In these a
// schedule has its longest gap: the gaps of one that runs often repeat each day or week.
const (
	samples = 400
	window  = 8 * 24 * time.Hour
)

// longest returns the longest time between two runs, not counting a change of clocks.
func longest(c cron.Schedule) time.Duration {
	out := time.Duration(0)
	at := c.Next(epoch)
	for i := 0; i < samples || at.Before(epoch.Add(window)); i++ {
		then := c.Next(at)
		if then.IsZero() {
			break
		}
		out, at = max(out, then.Sub(at)), then
	}
	if out == 0 {
		out = 24 * time.Hour
	}
	return out
}

// clockChange is by how much a change of clocks may move a run.
const clockChange = 3 * time.Hour

// lastTwo returns the times of the last two runs at or before now, the later one first. They are
// zero if there are none within three periods.
func (s schedule) lastTwo(now time.Time) (last, before time.Time) {
	at := now.Add(-3*s.period - clockChange)
	for {
		at = s.next(at)
		if at.IsZero() || at.After(now) {
			return last, before
		}
		last, before = at, last
	}
}

// tooOld reports whether two runs were due since a time.
func (s schedule) tooOld(since, now time.Time) bool {
	_, before := s.lastTwo(now)
	return !before.IsZero() && since.Before(before)
}
