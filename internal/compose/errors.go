package compose

import (
	"errors"
	"fmt"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// ErrPending is returned by an intent while it waits for what it has required by Require.
// Crossplane fetches it and calls the function again in the same pass.
var ErrPending = errors.New("what was asked for has not been fetched yet")

// InvalidError is an error of the claim, or of the installation's settings, that a user can fix. It
// changes nothing of what runs.
type InvalidError struct{ reason, text string }

func (e *InvalidError) Error() string { return e.text }

// Invalidf returns an InvalidError. The text is a sentence that names the field that is wrong and
// what would be right.
func Invalidf(format string, args ...any) error {
	return &InvalidError{reason: appsv1.ReasonInvalid, text: fmt.Sprintf(format, args...)}
}

// IsInvalid reports whether an error is an InvalidError.
func IsInvalid(err error) bool {
	var ie *InvalidError
	return errors.As(err, &ie)
}
