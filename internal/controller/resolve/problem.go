package resolve

import (
	"errors"
	"fmt"
)

// Problem that somebody must mend before anything can be reached. It says what
// would be right.
type Problem struct{ Reason, Message string }

// Error makes a Problem an error on its way up.
func (p *Problem) Error() error { return &problemError{p} }

type problemError struct{ *Problem }

// Error in words.
func (e *problemError) Error() string { return e.Message }

func problem(reason, format string, args ...any) error {
	return (&Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}).Error()
}

// AsProblem returns the Problem that an error is, or nil.
func AsProblem(err error) *Problem {
	e := &problemError{}
	if errors.As(err, &e) {
		return e.Problem
	}
	return nil
}
