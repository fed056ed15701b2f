//go:build e2e

// Package upgrade tests that the previous release can be upgraded to this one, and downgraded
// again, without a failed request, without a lost row, and without a restart outside of the
// maintenance windows of claims. It installs the previous release, and a broken one, for all claims of the
// cluster, and this one again at its end.
package upgrade

import (
	"testing"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

var (
	tests   = suite.New("e2e-upgrade")
	cluster = tests.Cluster
)

type notes = suite.Notes

func TestMain(m *testing.M) {
	tests.Cleanup = func() error { return installThis(true) }
	tests.Main(m)
}

// TestUpgrade: the checks pass in their order. All of them run in a full run only.
func TestUpgrade(t *testing.T) { tests.Test(t, upgrades()) }
