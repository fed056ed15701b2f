//go:build e2e

// Package backup tests Backups and Restores: every kind of database is backed up to every kind of
// store and restored, and compared row by row. It also tests failures of stores, databases, pods
// and the provider.
package backup

import (
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

var (
	tests   = suite.New("e2e-backup")
	cluster = tests.Cluster
)

func TestMain(m *testing.M) { tests.Main(m) }

// TestBackup: the checks pass in their order. Without -full only the quick ones run.
func TestBackup(t *testing.T) {
	fs := []types.Feature{logical(), physical(backupv1.Volume)}
	if tests.Full() {
		fs = append(fs, faults(), physical(backupv1.S3), physical(backupv1.GCS), physical(backupv1.Azure), inNeed(), keys())
	}
	tests.Test(t, fs...)
}
