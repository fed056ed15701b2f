//go:build e2e

// Package core tests the main road: a claim becomes a running shop, and stays
// one through what happens to shops.
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

// TestCore lists the checks in their order. Those of one feature share a shop.
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
