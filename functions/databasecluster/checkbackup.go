package databasecluster

import (
	"cmp"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/profile"
	"github.com/storeplane/storeplane/internal/settings"
)

// CheckBackup returns an error for backups of a claim that are invalid with an installation's settings, whatever exists
// in the cluster.
func CheckBackup(s *appsv1.DatabaseClusterSpec, of *settings.Settings) error {
	if !backsUp(s) {
		return nil
	}
	spec := s.Backup
	if spec == nil {
		spec = &appsv1.DatabaseBackup{}
	}
	if _, _, err := build.ParseSchedule(cmp.Or(string(spec.Schedule), defaultSchedule), ""); err != nil {
		return compose.Invalidf("backup.schedule: %v", err)
	}
	if spec.IncrementalSchedule != "" {
		if _, _, err := build.ParseSchedule(string(spec.IncrementalSchedule), ""); err != nil {
			return compose.Invalidf("backup.incrementalSchedule: %v", err)
		}
	}
	traits := engineOf(s).Traits()
	from, _ := placeOf(spec, of)
	if !traits.Archives {
		if err := checkDumps(spec, traits.Name); err != nil {
			return err
		}
	}
	switch {
	case traits.Archives:
	case isNowhere(from) && spec.Enabled != nil:
		return compose.Invalidf("backup.destination is needed with engine %s, and its bucket with type volume: name a store or a volume claim, or have the platform team set a store in EnvironmentConfig storeplane", traits.Name)
	case isNowhere(from):
		// Those that an environment has by default are not made then.
		return nil
	}
	return checkMethod(spec.Method, &traits, from != nil && from.Type == string(backupv1.Volume))
}

// backsUp reports whether a claim asks for backups, or its environment has them.
func backsUp(s *appsv1.DatabaseClusterSpec) bool {
	if s.Backup != nil && s.Backup.Enabled != nil {
		return *s.Backup.Enabled
	}
	return profile.Of(s.Environment).Backups
}

// placeOf returns where backups go, or nil where neither the claim nor the installation names a place, and which field
// says so.
func placeOf(spec *appsv1.DatabaseBackup, of *settings.Settings) (place *appsv1.BackupDestination, where string) {
	if spec.Destination == nil && of.Backup != nil {
		return of.Backup.Destination(), "EnvironmentConfig storeplane: data.backup"
	}
	return spec.Destination, "backup.destination"
}

// isNowhere reports whether dumps have no place: no volume is created for them, since it would not outlive the claim.
func isNowhere(place *appsv1.BackupDestination) bool {
	return place == nil || place.Type == string(backupv1.Volume) && place.Bucket == ""
}

// checkDumps refuses fields that mean nothing for an engine that does not archive its log itself.
func checkDumps(spec *appsv1.DatabaseBackup, engine string) error {
	switch {
	case spec.IncrementalSchedule != "":
		return compose.Invalidf("backup.incrementalSchedule is not available with engine %s: each backup is a whole one: leave it out, and set backup.method to physical to archive what is written between them", engine)
	case spec.StorageSize != "":
		return compose.Invalidf("backup.storageSize is not available with engine %s: name a volume claim in backup.destination.bucket", engine)
	}
	return nil
}

// checkMethod refuses a method that the engine does not have, or not at a place.
func checkMethod(method string, t *engine.Traits, isVolume bool) error {
	switch {
	case t.Archives && method == string(backupv1.Logical):
		return compose.Invalidf("backup.method logical is not available with engine %s, whose backups are physical: leave it out, and create a Backup of method logical beside the claim", t.Name)
	case t.Archives || method != string(backupv1.Physical):
		return nil
	case t.LogArchiver == "":
		return compose.Invalidf("backup.method physical is not available with engine %s, whose databases are dumped: leave it out", t.Name)
	case isVolume:
		return compose.Invalidf("backup.method physical needs an object store with engine %s: a volume claim is mounted on one node, and binary logs come from all: name another backup.destination, or leave the method out", t.Name)
	}
	return nil
}
