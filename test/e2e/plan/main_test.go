//go:build e2e

// Package plan tests that plans come true: claims are edited, and what the edit did to what
// runs is compared with what its plan had said.
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

// TestPlan lists the checks in their order. Without -full only those are made that are
// quick.
func TestPlan(t *testing.T) {
	tests.Test(t, explains(), upgrades(), inWaves(), webApp(), database(), shop())
}
