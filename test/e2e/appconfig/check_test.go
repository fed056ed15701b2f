//go:build e2e

package appconfig

import (
	"time"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type notes = suite.Notes

// Bounds of waiting.
const (
	// soon is for what takes a reconcile or two.
	soon = 30 * time.Second
	// rolled is for a rollout to end, with pods that start one after the other.
	rolled = 2 * time.Minute
	// started is for what comes up from nothing while the machine is busy.
	started = 5 * time.Minute
	// collected is for what is looked at when a rollout ends, or minutes later.
	collected = 12 * time.Minute
)

// progressDeadline of the AppConfigs here, as they write it.
const progressDeadline = 20 * time.Second

// rollbackSlack is how much longer than that a rollback may take until all pods
// are well again.
const rollbackSlack = 20 * time.Second
