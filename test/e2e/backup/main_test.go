//go:build e2e

// Package backup tests Backups and Restores: every kind of database into every
// kind of store and back, compared row by row; and what becomes of them when
// stores, databases, pods and the provider fail.
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

// TestBackup lists the checks in their order. Without -full only those are made
// that are quick.
func TestBackup(t *testing.T) {
	fs := []types.Feature{logical(), physical(backupv1.Volume)}
	if tests.Full() {
		fs = append(fs, faults(), physical(backupv1.S3), physical(backupv1.GCS), physical(backupv1.Azure), inNeed(), keys())
	}
	tests.Test(t, fs...)
}
