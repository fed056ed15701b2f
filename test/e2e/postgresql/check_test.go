//go:build e2e

package postgresql

import (
	"github.com/storeplane/storeplane/test/e2e/suite"
)

type (
	notes = suite.Notes
	check = suite.Check
)

// repeats of what may go wrong once in a while.
func repeats() int {
	if tests.Full() {
		return 3
	}
	return 1
}
