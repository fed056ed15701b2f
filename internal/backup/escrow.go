package backup

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// EscrowNamespace holds copies of the keys of databases' and Backups' own, so that backups can be read
// whose namespace is lost. Only the platform team and the provider need rights there.
const EscrowNamespace = "storeplane-escrow"

// EscrowKey is the key of a copy that has the encryption's key. A copy without it says that
// the database's backups are plain.
const EscrowKey = "key"

// EscrowAnnotation of a Backup asks for a copy of the key that it names, or that says that
// it names none.
const EscrowAnnotation = "backup.example.com/escrow"

// EscrowName of a database's copy. Neither a namespace nor a DatabaseCluster has a dot in
// its name.
func EscrowName(namespace, name string) string { return namespace + "." + name }

// LogicalEscrowName of the copy of a Backup's own key, with method logical. The name of a Backup
// may have dots, and that of a DatabaseCluster's copy has one alone.
func LogicalEscrowName(namespace, name string) string { return namespace + "." + name + ".backup" }

// LogicalKeyName is the Secret with a Backup's own key, with method logical. A DatabaseCluster of
// the Backup's name has its own in <name>-backup-key.
func LogicalKeyName(name string) string { return name + "-dump-key" }

// IsLogicalKey tells whether a Secret was made for a Backup's own key. It has no owner, and so
// outlives the Backup: without it the backups cannot be read.
func IsLogicalKey(s *corev1.Secret, name string) bool {
	return metav1.GetControllerOf(s) == nil && s.Labels["app.kubernetes.io/managed-by"] == "storeplane" && s.Labels[backupv1.BackupLabel] == name
}
