//go:build e2e

// Package upgrade tests that the release before can be upgraded to this one, and back: without a
// failed request, without a lost row, and without a restart out of the windows of claims. It
// installs that release, for all claims of the cluster, and this one again at its end.
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

// TestUpgrade lists the checks in their order: all of them are made in full alone.
func TestUpgrade(t *testing.T) { tests.Test(t, upgrades()) }
