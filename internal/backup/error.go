package backup

import (
	"errors"
	"fmt"
)

// An Error is an error that knows its Reason.
type Error struct {
	Reason Reason
	Err    error
}

// Error in words.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap the error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error with a Reason.
func Errorf(reason Reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// WithReason gives err a Reason, unless it has one already.
func WithReason(reason Reason, err error) error {
	if err == nil || ReasonOf(err) != "" {
		return err
	}
	return &Error{Reason: reason, Err: err}
}

// ReasonOf err, or none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
