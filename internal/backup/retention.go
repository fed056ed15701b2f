package backup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// DefaultRetention is the age at which backups expire if neither a retention nor a keep is set.
const DefaultRetention = "30d"

// A Policy decides which backups are kept.
type Policy struct {
	// Age is how long all backups are kept; 0 keeps none because of its age.
	Age time.Duration

	// Keep is which older backups are kept as well, or nil.
	Keep *backupv1.Keep

	// Zone is the time zone in which days, weeks and months begin. Nil is UTC.
	Zone *time.Location
}

// NewPolicy returns the policy of a retention like 30d, 4w or 12m, of what to keep beyond it, and
// of the name of a time zone. Each may be empty.
func NewPolicy(retention string, keep *backupv1.Keep, zone string) (Policy, error) {
	if retention == "" && keep == nil {
		retention = DefaultRetention
	}
	p := Policy{Keep: keep}
	var err error
	if p.Age, err = parseRetention(retention); err != nil {
		return Policy{}, err
	}
	// The empty name is UTC.
	if p.Zone, err = time.LoadLocation(zone); err != nil {
		return Policy{}, fmt.Errorf("cannot find the time zone %q: %w", zone, err)
	}
	return p, nil
}

// parseRetention parses a number of days, weeks, or months of 30 days.
func parseRetention(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	days := map[byte]int{'d': 1, 'w': 7, 'm': 30}[s[len(s)-1]]
	n, err := strconv.Atoi(s[:len(s)-1])
	if days == 0 || err != nil || n < 1 {
		return 0, fmt.Errorf("cannot read the retention %q: it has the form 30d, 4w or 12m", s)
	}
	const day = 24 * time.Hour
	// A Duration holds at most some 292 years. With a longer retention nothing expires.
	if most := int(1<<63-1) / int(day) / days; n > most {
		n = most
	}
	return time.Duration(n*days) * day, nil
}

// Expired returns the backups that are to be deleted, oldest first. The newest backup, and the
// newest one that was verified, are never among them.
func (p Policy) Expired(backups []Entry, now time.Time) []Entry {
	// Newest first; of the same age the greater id is the newer one.
	sorted := slices.Clone(backups)
	slices.SortFunc(sorted, func(a, b Entry) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID))
	})

	stays := map[string]bool{}
	for _, e := range sorted {
		// A backup whose time is in the future, because clocks differ, is kept too.
		if p.Age > 0 && now.Sub(e.Time) < p.Age {
			stays[e.ID] = true
		}
	}
	if len(sorted) > 0 {
		stays[sorted[0].ID] = true
	}
	if i := slices.IndexFunc(sorted, func(e Entry) bool { return e.Verified != nil }); i >= 0 {
		stays[sorted[i].ID] = true
	}
	if k := p.Keep; k != nil {
		for _, e := range sorted[:min(int(k.Last), len(sorted))] {
			stays[e.ID] = true
		}
		p.newestOfEach(sorted, int(k.Daily), stays, day)
		p.newestOfEach(sorted, int(k.Weekly), stays, week)
		p.newestOfEach(sorted, int(k.Monthly), stays, month)
	}

	expired := slices.DeleteFunc(sorted, func(e Entry) bool { return stays[e.ID] })
	slices.Reverse(expired)
	return expired
}

// newestOfEach keeps the newest backup of each of the newest n periods that have one.
func (p Policy) newestOfEach(sorted []Entry, n int, stays map[string]bool, period func(time.Time) [2]int) {
	seen := map[[2]int]bool{}
	for _, e := range sorted {
		at := period(e.Time.In(p.zone()))
		if seen[at] {
			continue
		}
		if len(seen) == n {
			return
		}
		seen[at] = true
		stays[e.ID] = true
	}
}

func (p Policy) zone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone
}

func day(t time.Time) [2]int { return [2]int{t.Year(), t.YearDay()} }

// week returns the year and the number of a week of ISO 8601, which begins on Monday. The year is
// that of the week, which differs from the calendar's around the turn of the year.
func week(t time.Time) [2]int {
	year, w := t.ISOWeek()
	return [2]int{year, w}
}

func month(t time.Time) [2]int { return [2]int{t.Year(), int(t.Month())} }
