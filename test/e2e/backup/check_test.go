//go:build e2e

package backup

import (
	"time"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type notes = suite.Notes

// Bounds of waiting.
const (
	// soon is for what takes a reconcile or two.
	soon = time.Minute
	// started is for a server to start.
	started = 3 * time.Minute
	// done is for a backup, a verification or a restore.
	done = 5 * time.Minute
	// givenUp is for what is tried three times first, each time for as long as a
	// store may be silent.
	givenUp = 10 * time.Minute
)
