package databasecluster

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// planRepository resolves the size of the volume that is created for backups. A claim that needs
// more than a new volume holds is refused. One that exists never blocks another change: a condition
// reports that it is too small, and the oldest backups expire early.
func (d *inputs) planRepository(b *backing, want, storage string) error {
	if !b.own {
		if want != "" && d.spec.Backup.Destination != nil {
			return compose.Invalidf("backup.storageSize is of the volume claim that Storeplane creates: leave it out, or backup.destination")
		}
		return nil
	}
	size, exists, err := d.repositorySize(want, storage)
	if err != nil {
		return err
	}
	b.storage = size.String()
	days, err := pgbackrest.Days(b.retention)
	if err != nil {
		return compose.Invalidf("backup.retention: %v", err)
	}
	database := resource.MustParse(storage)
	plan := pgbackrest.Plan{Retention: days, Full: b.fullPeriod()}
	need := inGi(plan.PeakOf(database.Value()))
	if need.Cmp(size) <= 0 {
		return nil
	}
	short := fmt.Sprintf("%s cannot hold the backups of %s at a full one each %s: half-full volumes of %s need %s: raise backup.storageSize, shorten backup.retention, make full backups less often, or set backup.destination",
		b.storage, b.retention, readableDays(plan.Full), storage, need.String())
	if !exists {
		return compose.Invalidf("backup.storageSize %s", short)
	}
	b.smaller = "A volume of " + short
	return nil
}

// readableDays formats the days between two runs.
func readableDays(days float64) string {
	if days == 1 {
		return "day"
	}
	return fmt.Sprintf("%g days", math.Round(days*10)/10)
}

// repositorySize returns the wanted size of the volume, and whether it exists. A volume that exists
// keeps its size until the claim requests more.
func (d *inputs) repositorySize(want, storage string) (resource.Quantity, bool, error) {
	var have resource.Quantity
	templates := d.live.repository.Spec.VolumeClaimTemplates
	for _, t := range templates {
		have = t.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	if volume := d.live.desired.Repository; volume != nil {
		if size, err := resource.ParseQuantity(volume.Storage); err == nil && size.Cmp(have) > 0 {
			have = size
		}
	}
	if want == "" {
		if len(templates) > 0 {
			return have, true, nil
		}
		database := resource.MustParse(storage)
		database.Mul(pgbackrest.RepositoryFactor)
		return database, false, nil
	}
	size, err := resource.ParseQuantity(want)
	if err != nil || size.Sign() <= 0 {
		return size, false, compose.Invalidf("backup.storageSize must be a quantity above zero, like 500Gi: is %q", want)
	}
	if len(templates) > 0 && size.Cmp(have) < 0 {
		return size, true, compose.Invalidf("backup.storageSize may not shrink: %s → %s", have.String(), want)
	}
	return size, len(templates) > 0, nil
}

// fullEvery returns how many days lie between two full backups, or 0 if all backups of their
// schedule are full, since there is another schedule for incremental ones.
func (b *backing) fullEvery() int {
	if b.incremental != "" {
		return 0
	}
	return pgbackrest.DefaultFullEvery
}

// fullPeriod returns the time between two full backups in days.
func (b *backing) fullPeriod() float64 {
	period, every := daysBetween(b.schedule), float64(b.fullEvery())
	if every <= period {
		return period
	}
	// The first run on or after the day that is due makes a full backup.
	return math.Ceil(every/period) * period
}

// daysBetween returns the average number of days between two runs of a schedule, over at most 400
// runs or a year. Schedules that run often repeat within fewer runs.
func daysBetween(schedule string) float64 {
	const runs, year = 400, 366 * 24 * time.Hour
	c, _, err := build.ParseSchedule(schedule, "")
	if err != nil {
		// resolveBackup has checked the schedule.
		return 1
	}
	first := c.Next(time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC))
	last, n := first, 0
	for ; n < runs && last.Sub(first) < year; n++ {
		next := c.Next(last)
		if next.IsZero() {
			break
		}
		last = next
	}
	if n == 0 {
		return year.Hours() / 24
	}
	return last.Sub(first).Hours() / 24 / float64(n)
}

// inGi returns a quantity that people can read, rounded up to a GiB.
func inGi(bytes int64) resource.Quantity {
	const gi = 1 << 30
	return *resource.NewQuantity((bytes+gi-1)/gi*gi, resource.BinarySI)
}
