package compose

import (
	"errors"
	"fmt"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// ErrPending is an intent's answer while it waits for what it has asked
// Crossplane for by Require: Crossplane calls again in the same breath.
var ErrPending = errors.New("what was asked for has not been fetched yet")

// InvalidError is an error of the claim, or of the installation's settings,
// that a user can act on. It changes nothing of what runs.
type InvalidError struct{ reason, text string }

func (e *InvalidError) Error() string { return e.text }

// Invalidf returns an InvalidError. The text is a sentence that says which
// field is wrong and what would be right.
func Invalidf(format string, args ...any) error {
	return &InvalidError{reason: appsv1.ReasonInvalid, text: fmt.Sprintf(format, args...)}
}

// IsInvalid is true for an error of the claim.
func IsInvalid(err error) bool {
	var ie *InvalidError
	return errors.As(err, &ie)
}
