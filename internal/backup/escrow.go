package backup

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/label"
)

// EscrowNamespace holds copies of the generated keys of databases and Backups, so that backups
// can be read whose namespace is lost. Only the platform team and the provider need rights there.
const EscrowNamespace = "storeplane-escrow"

// EscrowKey is the data key of a copy under which the encryption key is stored. A copy without it
// records that the backups are not encrypted.
const EscrowKey = "key"

// EscrowAnnotation on a Backup requests a copy of the key that its encryption names, or a copy
// which records that it names none.
const EscrowAnnotation = "backup.example.com/escrow"

// EscrowName is the name of the copy of a database's key. Neither a namespace nor a
// DatabaseCluster has a dot in its name.
func EscrowName(namespace, name string) string { return namespace + "." + name }

// LogicalEscrowName is the name of the copy of the generated key of a Backup with method logical.
// It cannot equal an EscrowName, which has exactly one dot, while the name of a Backup may have
// more.
func LogicalEscrowName(namespace, name string) string { return namespace + "." + name + ".backup" }

// LogicalKeyName is the name of the Secret with the generated key of a Backup with method
// logical. A DatabaseCluster of the same name has its key in <name>-backup-key.
func LogicalKeyName(name string) string { return name + "-dump-key" }

// IsLogicalKey reports whether a Secret was created for the generated key of a Backup. The Secret
// has no owner, so it outlives the Backup: without the key the backups cannot be read.
func IsLogicalKey(s *corev1.Secret, name string) bool {
	return metav1.GetControllerOf(s) == nil && s.Labels[label.ManagedBy] == label.Storeplane && s.Labels[backupv1.BackupLabel] == name
}
