//go:build e2e

// Package postgresql tests a DatabaseCluster under faults: servers are killed, frozen, moved,
// added, removed and changed while a ledger records every row that was acknowledged.
package postgresql

import (
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

var (
	tests   = suite.New("e2e-postgresql")
	cluster = tests.Cluster
)

func TestMain(m *testing.M) {
	tests.Cleanup = harness.Unshrink
	tests.Main(m)
}

// TestPostgreSQL: the checks pass in their order. Without -full only the quick ones run.
func TestPostgreSQL(t *testing.T) {
	if tests.Soaks() {
		tests.Test(t, soak())
		return
	}
	fs := []types.Feature{production()}
	if tests.Full() {
		fs = append(fs, development(), major("15"), major("18"))
	}
	tests.Test(t, fs...)
}
