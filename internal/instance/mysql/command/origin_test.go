package command

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPinned: a backup is pinned until its binary logs were replayed, and not for long if they never are.
func TestPinned(t *testing.T) {
	errReplay := errors.New("the replay failed")
	for name, tc := range map[string]struct {
		reason string
		starts time.Duration
		err    error
		want   int
	}{
		"Replayed": {reason: "The server has to start before.", starts: 20 * time.Minute, want: 1},
		"Failed":   {reason: "A replay that fails reads no more of it.", starts: time.Minute, err: errReplay, want: 1},
		"Late":     {reason: "A server that does not start for long is taken for one that does not start.", starts: 2 * time.Hour, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unpinned := 0
				replay := pinned(func() { unpinned++ }, func(context.Context, *sql.DB) error {
					if early := unpinned > 0; early != (tc.starts > startWithin) {
						t.Errorf("%s\nunpinned when the replay began: %t", tc.reason, early)
					}
					return tc.err
				})
				time.Sleep(tc.starts)
				synctest.Wait()
				if err := replay(t.Context(), nil); !errors.Is(err, tc.err) {
					t.Errorf("%s\nreplay: want %v, got %v", tc.reason, tc.err, err)
				}
				time.Sleep(startWithin)
				synctest.Wait()
				if unpinned != tc.want {
					t.Errorf("%s\nunpinned %d times, want %d", tc.reason, unpinned, tc.want)
				}
			})
		})
	}
}
