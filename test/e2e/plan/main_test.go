//go:build e2e

// Package plan tests that plans come true: it edits claims and compares the effects with those that
// the plan of the edit announced.
package plan

import (
	"testing"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

var (
	tests   = suite.New("e2e-plan")
	cluster = tests.Cluster
)

type (
	check = suite.Check
	notes = suite.Notes
)

func TestMain(m *testing.M) { tests.Main(m) }

// TestPlan: the checks pass in their order. Without -full only the quick ones run.
func TestPlan(t *testing.T) {
	tests.Test(t, explains(), upgrades(), inWaves(), webApp(), database(), group(), shop())
}
