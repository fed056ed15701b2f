package manager

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

func TestDrain(t *testing.T) {
	cases := map[string]struct {
		reason string

		// each is how long archiving a segment takes, and count how many segments wait.
		each  time.Duration
		count int64
		err   error

		want   bool
		within time.Duration
	}{
		"Nothing": {reason: "Nothing waits.", want: true},
		"Some":    {reason: "What waits is archived, one after the other.", each: time.Second, count: 10, want: true, within: 10 * time.Second},
		"Away":    {reason: "A store that takes nothing is not waited for.", each: time.Hour, count: 1, within: stalledFor},
		"Many":    {reason: "What takes too long the next primary archives.", each: time.Second, count: 1000, within: drainWithin},
		"Down":    {reason: "A server that does not answer is not waited for.", err: errors.New("it is down")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := drain(t.Context(), func(context.Context) (postgres.Archiver, error) {
					done := int64(0)
					if tc.each > 0 {
						done = min(int64(time.Since(began)/tc.each), tc.count)
					}
					return postgres.Archiver{Waiting: tc.count - done, Last: fmt.Sprint("segment ", done)}, tc.err
				})
				if took := time.Since(began); got != tc.want || took > tc.within+pollPeriod {
					t.Errorf("%s\ndrain(): got %t after %s, want %t within %s", tc.reason, got, took, tc.want, tc.within)
				}
			})
		})
	}
}
