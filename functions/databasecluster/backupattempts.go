package databasecluster

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// replicasWithin is how long the first backup and the schedule wait for servers that do not become
// ready. Usually the backup is made once the replicas have copied the primary, and not beside that.
const replicasWithin = 10 * time.Minute

// backsUpAlone reports whether backups no longer wait for all servers: there is a primary that archives,
// which takes writes that nothing else has, and another server may be missing for days. While servers
// are replaced the primary may not have the repository yet.
func (d *cluster) backsUpAlone() bool {
	l := d.live
	archives := l.primary() != "" && l.cluster.System != "" && l.cluster.Archive != nil && !l.isOutdated()
	return archives && !l.created.IsZero() && l.now.Sub(l.created) >= replicasWithin
}

// firstJobs returns the components of the Jobs that make the first backup: the last attempt, and those
// that still run.
func (d *cluster) firstJobs() []string {
	last := d.firstName()
	names := []string{last}
	for name := range d.live.jobs {
		if strings.HasPrefix(name, d.firstBase()) && name != last && !d.ended(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// firstName returns the component of the last attempt at the first backup into a repository: without a
// backup the archive restores nothing. It is retried as long as the repository has none.
func (d *cluster) firstName() string { return d.attempt(d.firstBase(), d.lacksFirst()) }

// firstBase returns the component of the first attempt at that.
func (d *cluster) firstBase() string {
	o := d.backup.destination
	return backupFirst + "-" + build.Digest(string(o.Type), o.Bucket, o.Prefix, o.Endpoint)[:8]
}

// lacksFirst reports whether the repository has never had a backup, and servers run that could make one.
// Once it has lost those that it had, there is a gap, whose backup is retried.
func (d *cluster) lacksFirst() bool {
	a := d.live.cluster.Archive
	return a != nil && !a.BackedUp && !a.Open() && !d.spec.Hibernated
}

// openGap returns the last gap in the archive after which no backup was completed, or nil.
func (d *cluster) openGap() *instance.Gap {
	a := d.live.cluster.Archive
	if a == nil {
		return nil
	}
	for i := range slices.Backward(a.Gaps) {
		if a.Gaps[i].To == nil {
			return &a.Gaps[i]
		}
	}
	return nil
}

const (
	// gapAgain is the pause before the backup after a gap is retried when its Job has
	// failed: the cause may take that long to be fixed. It is also the pause between
	// two backups that make room.
	gapAgain = 10 * time.Minute

	// mostAttempts is how many attempts have names of their own, which fit a label. Then
	// the names are used again.
	mostAttempts = 99
)

// pollInterval returns the installation's interval, or a minute at most while a backup is to begin
// some time after its Job has ended or after the last copy, or without servers that are missing: no event announces that.
func (d *cluster) pollInterval() time.Duration {
	interval := d.settings.Interval()
	if !d.spec.Hibernated && (d.openGap() != nil || d.full() || d.awaitsFirst() || d.awaitsCopy()) && (interval == 0 || interval > time.Minute) {
		return time.Minute
	}
	return interval
}

// gapName returns the component of the Job that makes the backup after the open gap in the archive,
// or "" without a gap: nothing beyond the gap is restored without that backup. Once all backups are
// lost it is the Job of the first backup into the repository, until that has ended.
func (d *cluster) gapName() string {
	gap := d.openGap()
	if gap == nil {
		return ""
	}
	if first := d.firstName(); d.live.cluster.Archive.Lost() && !d.ended(first) {
		return first
	}
	return d.attempt(backupGap+"-"+build.Digest(gap.First, gap.Last)[:8], true)
}

// attempt returns the component of the last attempt at a backup, whose first one has the name. If it is
// retried, the next one begins gapAgain after the one before has failed.
func (d *cluster) attempt(name string, retried bool) string {
	attempt := func(n int) string {
		if n == 1 {
			return name
		}
		return name + "-" + strconv.Itoa(n)
	}
	last := 1
	for n := range mostAttempts {
		if _, ok := d.live.jobs[attempt(n+1)]; ok {
			last = n + 1
		}
	}
	if at := failedAt(d.live.jobs[attempt(last)]); retried && !at.IsZero() && d.live.now.Sub(at) >= gapAgain && !d.roomAtWork() {
		last = last%mostAttempts + 1
	}
	return attempt(last)
}

// gapJobs returns the components of the Jobs that make backups after gaps, sorted: that of the open
// gap, and those that still run for a gap that is closed.
func (d *cluster) gapJobs() []string {
	if d.spec.Hibernated {
		return nil
	}
	var names []string
	open := d.gapName()
	for name := range d.live.jobs {
		if strings.HasPrefix(name, backupGap+"-") && name != open && !d.ended(name) {
			names = append(names, name)
		}
	}
	if strings.HasPrefix(open, backupGap+"-") {
		names = append(names, open)
	}
	slices.Sort(names)
	return names
}

// awaitsFirst reports whether the first backup is to begin without an event: it has failed, or it waits
// for servers that may never be ready.
func (d *cluster) awaitsFirst() bool {
	if !d.backup.enabled || !d.traits.Archives || d.live.primary() == "" {
		return false
	}
	job, there := d.live.jobs[d.firstName()]
	return !there && !d.backsUpAlone() || d.lacksFirst() && !failedAt(job).IsZero()
}

// ended reports whether the Job of a component has completed or failed.
func (d *cluster) ended(component string) bool {
	job := d.live.jobs[component]
	return job.Succeeded > 0 || !failedAt(job).IsZero()
}

// failedAt returns when a Job failed for good, or the zero time.
func failedAt(job batchv1.JobStatus) time.Time {
	for _, c := range job.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
