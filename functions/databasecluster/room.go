package databasecluster

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// full reports whether WAL is not archived because the volume of the backups is full. A backup
// makes room, since it expires older ones.
func (d *cluster) full() bool {
	a := d.live.cluster.Archive
	return a != nil && a.Full && d.backup.isVolume()
}

// roomName returns the component of the Job whose backup makes room on a full volume, or "" before
// the first one. The last one is declared even after it has ended: the next one begins gapAgain
// after that at the earliest, however often the volume fills.
func (d *cluster) roomName() string {
	if d.spec.Hibernated || !d.backup.isVolume() {
		return ""
	}
	attempt := func(n int) string { return backupRoom + "-" + strconv.Itoa(n) }
	last := 0
	for n := range mostAttempts {
		if _, ok := d.live.jobs[attempt(n+1)]; ok {
			last = n + 1
		}
	}
	next := d.full() && !d.backingUp() && !d.gapBegins() && d.live.primary() != ""
	if last > 0 {
		at, ended := endedAt(d.live.jobs[attempt(last)])
		next = next && ended && d.live.now.Sub(at) >= gapAgain
	}
	switch {
	case next:
		return attempt(last%mostAttempts + 1)
	case last == 0:
		return ""
	}
	return attempt(last)
}

// backingUp reports whether another backup is running, which makes room as well.
func (d *cluster) backingUp() bool {
	for name := range d.live.jobs {
		if !strings.HasPrefix(name, backupRoom+"-") && !d.ended(name) {
			return true
		}
	}
	return d.live.scheduled
}

// gapBegins reports whether a backup after a gap begins now, which makes room as well.
func (d *cluster) gapBegins() bool {
	name := d.gapName()
	_, begun := d.live.jobs[name]
	return name != "" && !begun && d.live.primary() != ""
}

// roomAtWork reports whether a backup that makes room is running.
func (d *cluster) roomAtWork() bool {
	for name := range d.live.jobs {
		if strings.HasPrefix(name, backupRoom+"-") && !d.ended(name) {
			return true
		}
	}
	return false
}

// roomBackup returns the Job that makes room. Its backup is full only if a full one is due, since
// an incremental one takes less room.
func (d *cluster) roomBackup(component string) *batchv1.Job {
	job := d.firstBackup(component)
	job.Spec = d.backupJob(true, cmp.Or(d.backup.fullEvery(), pgbackrest.DefaultFullEvery))
	job.Spec.BackoffLimit = new(int32(2))
	return job
}

// fullVerdict returns the verdict on a volume that is full, with what is done about it.
func (d *cluster) fullVerdict() verdict {
	return verdict{reason: appsv1.ReasonRepositoryFull, message: clip("The volume of the backups is full, so what is written is not archived: " + d.makingRoom())}
}

func (d *cluster) makingRoom() string {
	name := d.roomName()
	job, begun := d.live.jobs[name]
	switch _, ended := endedAt(job); {
	case (d.backingUp() || d.gapBegins()) && (!begun || ended):
		return "a backup is under way, which makes room"
	case name == "":
		return "a backup makes room once there is a primary"
	case !failedAt(job).IsZero():
		why := "see its log"
		if f := d.live.watcher.Status.AtProvider.LastFailure; f != nil {
			why = f.Message
		}
		return "Job " + d.Name(name) + " has failed: " + why
	case ended:
		return "Job " + d.Name(name) + " has made room, and what waits is archived next"
	}
	return "Job " + d.Name(name) + " makes room"
}

// endedAt returns when a Job completed or failed, and whether it did.
func endedAt(job batchv1.JobStatus) (time.Time, bool) {
	for _, c := range job.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}
