//go:build e2e

// Package core tests that a claim becomes a running EcommercePlatform, and stays healthy through
// rollouts, edits by hand, lost pods and outages.
package core

import (
	"testing"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

var (
	tests   = suite.New("e2e-core")
	cluster = tests.Cluster
)

func TestMain(m *testing.M) { tests.Main(m) }

// TestCore: the checks pass in their order. Those of one feature share a claim.
func TestCore(t *testing.T) {
	tests.Test(t,
		installation(),
		developmentShop(),
		neighbours(),
		takenNames(),
		badInput(),
		firstHour(),
		productionShop(),
		developmentShopEnds(),
	)
}
