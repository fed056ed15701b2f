//go:build e2e

package appconfig

import (
	"time"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type notes = suite.Notes

// Timeouts.
const (
	// soon is for what takes one or two reconciles.
	soon = 30 * time.Second
	// rolled is for a rollout with pods that start one after the other.
	rolled = 2 * time.Minute
	// started is for what starts from nothing while the machine is busy.
	started = 5 * time.Minute
	// collected is for the removal of old bundles, which is due at the end of a rollout or minutes
	// later.
	collected = 12 * time.Minute
)

// progressDeadline is the deadline in the AppConfigs of these tests.
const progressDeadline = 20 * time.Second

// rollbackSlack is how much longer than the deadline a rollback may take until all pods are healthy
// again.
const rollbackSlack = 20 * time.Second
