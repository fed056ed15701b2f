package resolve

import (
	"errors"
	"fmt"
)

// Problem is what a user must fix before anything can be reached. Its message contains what would
// be right.
type Problem struct{ Reason, Message string }

// Error returns the Problem as an error, from which AsProblem returns it again.
func (p *Problem) Error() error { return &problemError{p} }

type problemError struct{ *Problem }

// Error returns the message of the Problem.
func (e *problemError) Error() string { return e.Message }

func problem(reason, format string, args ...any) error {
	return (&Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}).Error()
}

// AsProblem returns the Problem that an error contains, or nil.
func AsProblem(err error) *Problem {
	e := &problemError{}
	if errors.As(err, &e) {
		return e.Problem
	}
	return nil
}
