//go:build e2e

package postgresql

import (
	"github.com/storeplane/storeplane/test/e2e/suite"
)

type (
	notes = suite.Notes
	check = suite.Check
)

// repeats is how often checks with results that may vary are repeated.
func repeats() int {
	if tests.Full() {
		return 3
	}
	return 1
}
