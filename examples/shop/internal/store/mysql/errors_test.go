package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
)

func TestRetryable(t *testing.T) {
	type want struct{ Retryable, Refused bool }
	cases := map[string]struct {
		reason string
		err    error
		want   want
	}{
		"Deadlock": {
			reason: "The server rolled back and asks for another try",
			err:    fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: 1213}),
			want:   want{Retryable: true, Refused: true},
		},
		"Certification": {
			reason: "A member that leaves its group while it commits may have sent the transaction to the others",
			err:    &mysql.MySQLError{Number: 3101},
			want:   want{Retryable: true, Refused: false},
		},
		"Shutdown": {
			reason: "A server that shuts down may have committed before it said so",
			err:    &mysql.MySQLError{Number: 1053},
			want:   want{Retryable: true, Refused: false},
		},
		"ReadOnly": {
			reason: "The connection leads to a former primary",
			err:    &mysql.MySQLError{Number: 1290},
			want:   want{Retryable: true, Refused: true},
		},
		"Offline": {
			reason: "A server that starts or stops takes no clients for a moment",
			err:    &connectError{&mysql.MySQLError{Number: 3032}},
			want:   want{Retryable: true, Refused: true},
		},
		"ForeignKey": {
			reason: "It would fail the same way again",
			err:    &mysql.MySQLError{Number: 1452},
			want:   want{Retryable: false, Refused: true},
		},
		"BrokenConnection": {
			reason: "What was sent before the connection broke may have been done",
			err:    mysql.ErrInvalidConn,
			want:   want{Retryable: true, Refused: false},
		},
		"StaleConnection": {
			reason: "Another connection may work",
			err:    driver.ErrBadConn,
			want:   want{Retryable: true, Refused: false},
		},
		"Network": {
			reason: "A refused connection may be taken a moment later",
			err:    &connectError{&net.OpError{Op: "dial", Err: errors.New("connection refused")}},
			want:   want{Retryable: true, Refused: false},
		},
		"AccessDenied": {
			reason: "A wrong password stays wrong",
			err:    &connectError{&mysql.MySQLError{Number: 1045}},
			want:   want{Retryable: false, Refused: true},
		},
		"Deadline": {
			reason: "An attempt's own deadline leaves time for the next",
			err:    context.DeadlineExceeded,
			want:   want{Retryable: true, Refused: false},
		},
		"Cancelled": {
			reason: "The request has ended, and another attempt serves no client",
			err:    &connectError{context.Canceled},
			want:   want{Retryable: false, Refused: false},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{Retryable: (&Database{}).Retryable(tc.err), Refused: refused(tc.err)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRetryable(...), refused(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
