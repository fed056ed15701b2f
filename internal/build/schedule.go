package build

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the images have no time zones of their own

	"github.com/robfig/cron/v3"
)

// ParseSchedule reads a cron expression and a time zone, and returns an error for those that the
// CronJob controller would refuse. It uses that controller's parser.
func ParseSchedule(spec, zone string) (cron.Schedule, *time.Location, error) {
	// The parser accepts a time zone in the schedule, the API server does not.
	if strings.Contains(spec, "TZ") {
		return nil, nil, fmt.Errorf("schedule %q may not hold a time zone: use timeZone", spec)
	}
	schedule, err := cron.ParseStandard(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("schedule %q is no cron expression: %w", spec, err)
	}
	location, err := loadLocation(zone)
	return schedule, location, err
}

func loadLocation(zone string) (*time.Location, error) {
	location, err := time.LoadLocation(zone)
	// Local would be the time zone of the machine that this runs on.
	if err != nil || strings.EqualFold(zone, "local") {
		return nil, fmt.Errorf("timeZone %q is not known: use a name like Europe/Paris", zone)
	}
	return location, nil
}
