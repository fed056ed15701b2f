package postgresql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestRetryable(t *testing.T) {
	type want struct{ Retryable, Refused bool }
	cases := map[string]struct {
		reason string
		err    error
		want   want
	}{
		"Serialization": {
			reason: "The server rolled back and asks for another try",
			err:    fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: "40001"}),
			want:   want{Retryable: true, Refused: true},
		},
		"Shutdown": {
			reason: "A server that shuts down may have committed before it said so",
			err:    &pgconn.PgError{Code: "57P01"},
			want:   want{Retryable: true, Refused: false},
		},
		"ReadOnly": {
			reason: "The connection leads to a former primary",
			err:    &pgconn.PgError{Code: "25006"},
			want:   want{Retryable: true, Refused: true},
		},
		"ForeignKey": {
			reason: "It would fail the same way again",
			err:    &pgconn.PgError{Code: "23503"},
			want:   want{Retryable: false, Refused: true},
		},
		"BrokenConnection": {
			reason: "What was sent before the connection broke may have been done",
			err:    io.ErrUnexpectedEOF,
			want:   want{Retryable: true, Refused: false},
		},
		"Network": {
			reason: "A refused connection may be taken a moment later",
			err:    &net.OpError{Op: "dial", Err: errors.New("connection refused")},
			want:   want{Retryable: true, Refused: false},
		},
		"Deadline": {
			reason: "An attempt's own deadline leaves time for the next",
			err:    context.DeadlineExceeded,
			want:   want{Retryable: true, Refused: false},
		},
		"Cancelled": {
			reason: "The request has ended, and another attempt serves no client",
			err:    context.Canceled,
			want:   want{Retryable: false, Refused: false},
		},
		"NoRows": {
			reason: "An answer is an answer",
			err:    pgx.ErrNoRows,
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
