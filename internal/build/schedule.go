package build

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the function's image has no time zones of its own

	"github.com/robfig/cron/v3"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// CheckSchedule returns an error for a cron expression or time zone that the
// CronJob controller would refuse. It is that controller's own parser.
func CheckSchedule(s appsv1.Schedule, zone string) error {
	// The parser takes a time zone in the schedule, the API server does not.
	if strings.Contains(string(s), "TZ") {
		return fmt.Errorf("schedule %q may not hold a time zone: use timeZone", s)
	}
	if _, err := cron.ParseStandard(string(s)); err != nil {
		return fmt.Errorf("schedule %q is no cron expression: %w", s, err)
	}
	if zone == "" {
		return nil
	}
	// Local would be the zone of wherever this runs.
	if _, err := time.LoadLocation(zone); err != nil || strings.EqualFold(zone, "local") {
		return fmt.Errorf("timeZone %q is not known: use a name like Europe/Paris", zone)
	}
	return nil
}
