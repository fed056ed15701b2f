package backup

import (
	"errors"
	"fmt"
)

// An Error is an error with a Reason.
type Error struct {
	Reason Reason
	Err    error
}

// Error returns the message of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error with a Reason.
func Errorf(reason Reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// WithReason gives err a Reason unless it has one already. It returns nil for nil.
func WithReason(reason Reason, err error) error {
	if err == nil || ReasonOf(err) != "" {
		return err
	}
	return &Error{Reason: reason, Err: err}
}

// ReasonOf returns the Reason of err, or "" if it has none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
