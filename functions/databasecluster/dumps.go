package databasecluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// Backups of an engine without an archive are dumps. The provider makes and verifies them, by a Backup with
// the claim's schedule.

// dumper is the component of the Secret with which backups connect.
const dumper = backup.Dumper

// addDumps declares the Backup, after the Secret by which it connects.
func (d *cluster) addDumps(add func(compose.Component)) {
	if !d.backup.watched || !d.dumpable() {
		return
	}
	add(compose.Component{Name: backups, After: []string{d.server, instances, dumper}, Health: alwaysHealthy, Make: func() compose.Object { return d.backupResource() }})
}

// dump makes a Backup one of dumps or of copies, by the claim's schedule.
func (d *cluster) dump(b *backupv1.Backup) {
	p := &b.Spec.ForProvider
	// The provider takes the version from the DatabaseCluster.
	p.Source.Version = ""
	p.Method, p.Schedule = backupv1.Logical, d.backup.schedule
	if d.backup.physical {
		p.Method = backupv1.Physical
	}
	if a := d.live.cluster.Archive; d.backup.physical && a.Open() && !d.spec.Hibernated {
		// Nothing after the gap can be restored before there is a backup with what is missing.
		b.Annotations[backupv1.RunNowAnnotation] = "gap-" + build.Digest(a.Gaps[0].First)[:8]
		return
	}
	if d.lacksCopy() {
		b.Annotations[backupv1.RunNowAnnotation] = "of-" + build.Digest(d.live.cluster.Archive.System)[:8]
		return
	}
	if !d.spec.Hibernated && d.live.watcher.isEmpty(d.live.created) {
		// The database is backed up before its schedule is due, at each new place. Older backups are
		// those of an earlier claim of its name.
		o, of := d.backup.destination, ""
		if d.backup.physical {
			of = string(backupv1.Physical)
		}
		b.Annotations[backupv1.RunNowAnnotation] = "first-" + build.Digest(string(o.Type), o.Bucket, o.Prefix, o.Endpoint, d.live.created.UTC().Format(time.RFC3339)+of)[:8]
	}
}

// copiedWithin is how long a copy may be made before the pod that archives binary logs has noticed it.
const copiedWithin = 15 * time.Minute

// lacksCopy reports whether the store has copies of this name, and none of the database that there is now: another history
// began where a user has named the server to lead.
func (d *cluster) lacksCopy() bool {
	return d.awaitsCopy() && d.live.watcher.isOlder(d.live.now.Add(-copiedWithin))
}

// awaitsCopy reports whether the store has copies of this name, and none is known to be of the database that there is now.
// That is decided by the time alone.
func (d *cluster) awaitsCopy() bool {
	a := d.live.cluster.Archive
	if !d.backup.physical || d.spec.Hibernated || a == nil || a.System == "" || a.BackedUp || a.Open() {
		return false
	}
	return d.live.watcher.hasSince(d.live.created)
}

// dumpable reports whether the user of backups exists, and reads all databases. It does also where reports
// were lost, if it did before.
func (d *inputs) dumpable() bool {
	return d.live.cluster.Dumps || d.live.dumper || d.live.watcher.exists
}

// dumperSecret returns the Secret with which backups connect: as a user that reads all databases, and to no
// particular one, so that all are backed up.
func (d *cluster) dumperSecret() *corev1.Secret {
	secret := d.connectionTo(engine.Address{User: d.traits.Dumper}, dumper)
	for _, key := range []string{appsv1.ConnectionDatabase, appsv1.ConnectionJDBC, appsv1.ConnectionVerified, appsv1.ConnectionReadOnlyHost} {
		delete(secret.Data, key)
	}
	return secret
}
