package databasecluster

import (
	"cmp"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/text"
)

// verdict is the status of one aspect of a cluster, from which a condition is made.
type verdict struct {
	True    bool
	reason  string
	message string
}

// problem returns the message of a verdict that is not true, or "".
func (v verdict) problem() string {
	if v.True {
		return ""
	}
	return v.message
}

func (v verdict) condition(typ string) compose.Condition {
	return compose.Condition{Type: typ, True: v.True, Reason: v.reason, Message: v.message}
}

// settles marks a condition that has several reasons while the servers start.
func settles(c compose.Condition) compose.Condition {
	c.Settles = true
	return c
}

func (d *cluster) conditions() []compose.Condition {
	return []compose.Condition{
		d.backups().condition(appsv1.TypeBackupHealthy),
		d.archive().condition(appsv1.TypeArchivingHealthy),
		settles(d.replication().condition(appsv1.TypeReplicationHealthy)),
		d.volumes().condition(appsv1.TypeStorageHealthy),
		d.problems(appsv1.ReasonParametersRefused, instance.SubjectParameter).condition(appsv1.TypeParametersApplied),
		d.problems(appsv1.ReasonReconcileFailed, instance.SubjectDatabase, instance.SubjectUser).condition(appsv1.TypeDatabasesReady),
	}
}

// archive reports whether WAL reaches the archive: nothing can be restored beyond what is archived.
func (d *cluster) archive() verdict {
	v := d.archiving()
	switch {
	case !d.archives() && !d.archivesLogs() || !d.spec.Hibernated:
		return v
	case v.True || v.reason == appsv1.ReasonPending:
		return verdict{True: true, reason: appsv1.ReasonHibernated}
	}
	// What was wrong stays so until the servers run again.
	v.message = clip("Hibernated, with data that is on the volumes alone until it is resumed. " + v.message)
	return v
}

// archiving reports on the archive as the last primary reported it.
func (d *cluster) archiving() verdict {
	switch a := d.live.cluster.Archive; {
	case d.backup.unplaced && d.backup.physical:
		return unplaced()
	case d.backup.unplaced:
		return verdict{True: true, reason: appsv1.ReasonDisabled, message: "Nothing is archived between dumps, for which backup.method would have to be physical"}
	case !d.backup.enabled:
		return notBackedUp()
	case !d.traits.Archives && !d.archivesLogs():
		return verdict{True: true, reason: appsv1.ReasonDisabled, message: "Dumps can be restored, and no time between them, for which backup.method would have to be physical"}
	case d.problem(instance.SubjectBackup) != "":
		return verdict{reason: appsv1.ReasonRepositoryNotReady, message: clip(d.problem(instance.SubjectBackup))}
	case a == nil:
		return verdict{reason: appsv1.ReasonPending, message: "Nothing has been archived yet"}
	case d.full():
		return d.fullVerdict()
	case a.Failing != "":
		return failing(a)
	case d.archivesLogs() && !a.BackedUp && a.Open():
		return verdict{reason: appsv1.ReasonArchiveGap, message: "The store holds no backup: nothing can be restored until one is complete, which starts automatically"}
	case d.archivesLogs() && !a.BackedUp && d.live.watcher.hasSince(d.live.created):
		return verdict{reason: appsv1.ReasonArchiveGap, message: "Another history of this database has begun, and nothing of it can be restored until a backup is complete, which starts automatically: if it fails, annotate the Backup with backup.example.com/run-now"}
	case d.archivesLogs() && !a.BackedUp:
		return verdict{reason: appsv1.ReasonPending, message: "The binary logs are archived, and can be restored once there is a backup of this database"}
	case a.Lost():
		return verdict{reason: appsv1.ReasonArchiveGap, message: "The repository holds no backup: nothing can be restored until " + d.gapBackup() + " has made one"}
	case a.Open() && d.archivesLogs():
		return verdict{reason: appsv1.ReasonArchiveGap, message: clip("Transactions " + a.Gaps[0].String() + " are not archived, and cannot be any more: what was written after them can be restored once a backup is complete, which starts automatically")}
	case a.Open():
		return verdict{reason: appsv1.ReasonArchiveGap, message: "WAL " + d.openGap().String() + " is lost: what was written after it can be restored once " + d.gapBackup() + " has made a backup"}
	case a.Recoverable == nil:
		return verdict{reason: appsv1.ReasonPending, message: "Nothing has been archived yet"}
	}
	return verdict{True: true, reason: appsv1.ReasonArchiving}
}

func failing(a *instance.Archive) verdict {
	what := "What is written is not archived: "
	if a.Archiving {
		what = "What is written is archived, and may be lost to a restore: "
	}
	return verdict{reason: appsv1.ReasonFailing, message: clip(what + a.Failing)}
}

func noPrimary() verdict {
	return verdict{reason: appsv1.ReasonNoPrimary, message: "No primary takes writes"}
}

// faults returns the conditions that are False although the claim is refused, by what the servers
// report: what has it refused, such as a Secret that was deleted, may be the cause.
func (d *inputs) faults() []compose.Condition {
	if d.live == nil || d.live.desired.Hibernated {
		return nil
	}
	var out []compose.Condition
	if a := d.live.cluster.Archive; a != nil && a.Failing != "" {
		out = append(out, failing(a).condition(appsv1.TypeArchivingHealthy), failing(a).condition(appsv1.TypeBackupHealthy))
	} else if v := d.live.watcher.failed(); v != nil {
		out = append(out, v.condition(appsv1.TypeBackupHealthy))
	}
	if d.live.cluster.Primary != "" && d.live.primary() == "" {
		out = append(out, noPrimary().condition(appsv1.TypeReplicationHealthy))
	}
	return out
}

// gapBackup names the Job that makes the backup after the open gap.
func (d *cluster) gapBackup() string {
	if d.spec.Hibernated {
		return "a Job"
	}
	return "Job " + d.Name(d.gapName())
}

// notBackedUp returns the verdict on backups that there are none of.
func notBackedUp() verdict {
	return verdict{True: true, reason: appsv1.ReasonDisabled, message: "No backups are asked for"}
}

// unplaced returns the verdict on backups that have no place.
func unplaced() verdict {
	return verdict{reason: appsv1.ReasonNoDestination, message: "There are no backups, since there is no place for them: set backup.destination or the installation's, or backup.enabled to false"}
}

// backups reports whether there is a backup to rely on.
func (d *cluster) backups() verdict {
	w, archive := &d.live.watcher, d.archive()
	switch {
	case d.backup.unplaced:
		return unplaced()
	case !d.backup.enabled:
		return notBackedUp()
	case !archive.True:
		return archive
	case !d.backup.watched && !d.traits.Archives:
		return verdict{reason: appsv1.ReasonBackupProviderNotInstalled, message: "There are no backups: provider-storeplane, which makes them, is not installed"}
	case !d.backup.watched:
		return verdict{reason: appsv1.ReasonBackupProviderNotInstalled, message: "Backup verification is unavailable: provider-storeplane is not installed"}
	case !w.exists, !d.traits.Archives && w.isOlder(d.live.created):
		return verdict{reason: appsv1.ReasonPending, message: "No backup has been made yet"}
	}
	// A Backup stays Ready after a failure while its newest good backup is recent.
	if v := w.failed(); v != nil {
		return *v
	}
	if w.isOverdue() {
		_, _, words := w.condition("Ready")
		return verdict{reason: appsv1.ReasonBackupFailed, message: clip(words)}
	}
	if yes, _, words := w.condition("Ready"); !yes {
		return verdict{reason: appsv1.ReasonPending, message: clip(cmp.Or(words, "No backup has been made yet"))}
	}
	if _, no, words := w.condition(backupv1.TypeVerified); no {
		return verdict{reason: appsv1.ReasonNotRestorable, message: clip(words)}
	}
	if d.backup.smaller != "" {
		return verdict{True: true, reason: appsv1.ReasonRepositoryTooSmall, message: d.backup.smaller + ": until then the oldest backups expire early"}
	}
	if d.backup.fallback {
		return verdict{True: true, reason: appsv1.ReasonStoredInCluster, message: "Backups are on a volume in this cluster and share its fate: set backup.destination, or the installation's"}
	}
	if d.backup.plain || d.backup.escrowed && !d.traits.Archives && w.isPlain() {
		return verdict{True: true, reason: appsv1.ReasonNotEncrypted, message: "Backups are not encrypted, since their repository has no key: to encrypt them, name another backup.destination, with backup.encryption"}
	}
	return verdict{True: true, reason: appsv1.ReasonHealthy}
}

// failed returns the verdict on a Backup whose last backup has failed, or nil.
func (b *backupStatus) failed() *verdict {
	f := b.Status.AtProvider.LastFailure
	if f == nil {
		return nil
	}
	return &verdict{reason: appsv1.ReasonBackupFailed, message: clip(f.Message)}
}

// clip shortens a message of more than 512 bytes, so that it stays readable.
func clip(message string) string { return text.Clip(message, 512) }

// replication reports whether every standby follows the primary, and whether one acknowledges
// writes if that is required.
func (d *cluster) replication() verdict {
	switch {
	case d.spec.Hibernated:
		return verdict{True: true, reason: appsv1.ReasonHibernated}
	case d.live.primary() == "" && d.held().Undecided:
		return verdict{reason: appsv1.ReasonLeaderUndecided, message: clip(d.held().Message)}
	case d.live.primary() == "":
		return noPrimary()
	case d.spec.Size == 1:
		return verdict{True: true, reason: appsv1.ReasonSingleServer}
	}
	standbys := make(map[string]instance.Standby, len(d.live.cluster.Standbys))
	synchronous := false
	for _, s := range d.live.cluster.Standbys {
		standbys[s.Name] = s
		synchronous = synchronous || s.Synchronous
	}
	var missing, lagging []string
	for i := range d.spec.Size {
		name := d.podName(i)
		switch s := standbys[name]; {
		case name == d.live.primary():
		case !s.Streaming:
			missing = append(missing, name)
		case s.Lagging:
			lagging = append(lagging, name)
		}
	}
	switch {
	case d.synchronous() && !synchronous && d.strict():
		return verdict{reason: appsv1.ReasonNoSynchronousStandby, message: "No synchronous standby: writes are blocked"}
	case d.synchronous() && !synchronous:
		return verdict{reason: appsv1.ReasonNoSynchronousStandby, message: "No synchronous standby: writes are on one server only"}
	case len(missing) > 0:
		return verdict{reason: appsv1.ReasonStandbyMissing, message: "Not following the primary: " + strings.Join(missing, ", ")}
	case len(lagging) > 0:
		return verdict{reason: appsv1.ReasonLagging, message: "Far behind the primary: " + strings.Join(lagging, ", ")}
	}
	return verdict{True: true, reason: appsv1.ReasonHealthy}
}

// volumes reports whether the volumes have room, and whether they have their size.
func (d *cluster) volumes() verdict {
	var full, refused []string
	reason := appsv1.ReasonNearlyFull
	for i := range d.spec.Size {
		name := d.podName(i)
		m := d.live.members[name]
		switch {
		case m.Filling >= 90:
			full, reason = append(full, "that of "+name+" to more than 90 percent"), appsv1.ReasonFull
		case m.Filling >= 80:
			full = append(full, "that of "+name+" to more than 80 percent")
		}
		if m.Volume != "" {
			refused = append(refused, "that of "+name+" "+m.Volume)
		}
	}
	if words := d.live.cluster.Repository; words != "" && d.backup.own {
		refused = append(refused, "that of the backups "+words)
	}
	switch {
	case len(full) > 0:
		return verdict{reason: reason, message: "Volumes are filled: " + strings.Join(full, ", ") + ": raise storageSize"}
	case len(refused) > 0:
		return verdict{reason: appsv1.ReasonVolumeResizeFailed, message: "Volumes do not have their size: " + strings.Join(refused, ", ")}
	}
	return verdict{True: true, reason: appsv1.ReasonHealthy}
}

// problems returns the verdict on some subjects of the problems that the instance managers report.
func (d *cluster) problems(reason string, subjects ...instance.Subject) verdict {
	var out []string
	for _, p := range d.live.cluster.Problems {
		for _, s := range subjects {
			if p.Subject == s {
				out = append(out, string(s)+" "+p.Name+": "+p.Message)
			}
		}
	}
	switch {
	case len(out) > 0:
		return verdict{reason: reason, message: strings.Join(out, ", ")}
	case d.live.cluster.Applied == "" && !d.spec.Hibernated:
		return verdict{reason: appsv1.ReasonPending, message: "Nothing has been applied yet"}
	}
	return verdict{True: true, reason: appsv1.ReasonApplied}
}
