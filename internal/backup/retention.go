package backup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// DefaultRetention is the age at which backups expire where nobody says
// otherwise.
const DefaultRetention = "30d"

// A Policy says which backups stay.
type Policy struct {
	// Age up to which all stay; 0 keeps none because of its age.
	Age time.Duration

	// Keep counts what stays beyond it, or is nil.
	Keep *backupv1.Keep

	// Zone in which days, weeks and months begin.
	Zone *time.Location
}

// NewPolicy of a retention like 30d, 4w or 12m, what to keep beyond it, and the
// name of a time zone. Each may be empty.
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

// parseRetention of a number of days, weeks, or months of 30 days.
func parseRetention(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	days := map[byte]int{'d': 1, 'w': 7, 'm': 30}[s[len(s)-1]]
	n, err := strconv.Atoi(s[:len(s)-1])
	if days == 0 || err != nil || n < 1 {
		return 0, fmt.Errorf("cannot read the retention %q: it should look like 30d, 4w or 12m", s)
	}
	const day = 24 * time.Hour
	// Beyond what a Duration holds, some 292 years, nothing expires.
	if most := int(1<<63-1) / int(day) / days; n > most {
		n = most
	}
	return time.Duration(n*days) * day, nil
}

// Expired returns those of the backups that are to be deleted, oldest first.
// The newest backup, and the newest one that was verified, are never among them.
func (p Policy) Expired(backups []Entry, now time.Time) []Entry {
	// Newest first; of the same age the greater id is the newer one.
	sorted := slices.Clone(backups)
	slices.SortFunc(sorted, func(a, b Entry) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID))
	})

	stays := map[string]bool{}
	for _, e := range sorted {
		// One from the future is a matter of clocks, not of age.
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

// newestOfEach of the newest n periods that have a backup stays.
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

// week of ISO 8601: it begins on Monday, and knows its own year.
func week(t time.Time) [2]int {
	year, w := t.ISOWeek()
	return [2]int{year, w}
}

func month(t time.Time) [2]int { return [2]int{t.Year(), int(t.Month())} }
