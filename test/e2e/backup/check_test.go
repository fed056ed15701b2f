//go:build e2e

package backup

import (
	"time"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type notes = suite.Notes

// Timeouts.
const (
	// soon is for what takes one or two reconciles.
	soon = time.Minute
	// started is for a server to start.
	started = 3 * time.Minute
	// done is for a backup, a verification or a restore.
	done = 5 * time.Minute
	// givenUp is for what is tried three times, each time for as long as a store may be silent.
	givenUp = 10 * time.Minute
)
