package backup

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/label"
)

// Names of the objects that a Backup creates. The validation of the Backup's name limits its length
// so that they fit. None is the name of an object of a DatabaseCluster with the Backup's name,
// since users name a Backup after its database. That of the policy to the database is none of a
// DatabaseCluster <backup>-dump either; <backup>-dump-source would be one.
func objectName(backup string) string       { return backup + "-dump" }
func sourcePolicyName(backup string) string { return backup + "-dump-database" }
func storeSecretName(backup string) string  { return backup + "-dump-store" }
func verifyName(backup string) string       { return backup + "-verify" }
func runName(backup, value string) string   { return backup + "-run-" + build.Digest(value) }

func verifyNowName(backup, value string) string {
	return backup + "-verify-" + build.Digest("now", value)
}

// firstName returns the name of the Job that verifies a backup out of schedule.
func firstName(backup, id string, attempt int) string {
	return attempted(backup+"-verify-"+build.Digest("first", id), attempt)
}

func checkName(backup, digest string, attempt int) string {
	return attempted(backup+"-check-"+digest, attempt)
}

func deleteName(backup string, attempt int) string {
	return fmt.Sprintf("%s-delete-%d", backup, attempt)
}

func attempted(name string, attempt int) string {
	if attempt <= 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, attempt)
}

// labels returns the labels of all objects that a Backup creates.
func labels(b *backupv1.Backup) map[string]string {
	return kube.Inherit(map[string]string{
		label.Name:           "backup",
		label.Instance:       b.Name,
		label.ManagedBy:      label.Storeplane,
		backupv1.BackupLabel: b.Name,
	}, b)
}

// meta returns the metadata of an object that a Backup creates and owns.
func meta(b *backupv1.Backup, name string, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       b.Namespace,
		Labels:          labels(b),
		Annotations:     maps.Clone(annotations),
		OwnerReferences: []metav1.OwnerReference{owner(b)},
	}
}

// owner returns the reference to the Backup by which its objects are deleted with it.
func owner(b *backupv1.Backup) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: backupv1.GroupVersion.String(),
		Kind:       backupv1.BackupKind,
		Name:       b.Name,
		UID:        b.UID,
		Controller: new(true),
	}
}

// location returns the path of the backups in their store.
func location(s *State) string {
	if s.byCluster() {
		return backup.Folder(s.params().Destination.Prefix, s.Backup.Namespace, s.params().Source.Connection.DatabaseClusterRef.Name)
	}
	folder := backup.Folder(s.params().Destination.Prefix, s.Backup.Namespace, s.Backup.Name)
	if s.copies() {
		return backup.Physical(folder)
	}
	return backup.Logical(folder)
}
