package command

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
)

// TestPinned: a backup is pinned until its binary logs were replayed, and no longer than an attempt to restore it takes.
func TestPinned(t *testing.T) {
	errReplay := errors.New("the replay failed")
	for name, tc := range map[string]struct {
		reason string
		starts bool
		err    error
	}{
		"Replayed": {reason: "The server has to start before.", starts: true},
		"Failed":   {reason: "A replay that fails reads no more of it.", starts: true, err: errReplay},
		"Never":    {reason: "A server that does not start replays nothing, and the next attempt has a pin of its own."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unpinned := 0
				attempt, end := context.WithCancel(t.Context())
				replay := pinned(attempt, func() { unpinned++ }, func(context.Context, *sql.DB) error {
					if unpinned > 0 {
						t.Errorf("%s\nit was not pinned when the replay began", tc.reason)
					}
					return tc.err
				})
				synctest.Wait()
				if tc.starts {
					if err := replay(attempt, nil); !errors.Is(err, tc.err) {
						t.Errorf("%s\nreplay: want %v, got %v", tc.reason, tc.err, err)
					}
				}
				end()
				synctest.Wait()
				if unpinned != 1 {
					t.Errorf("%s\nunpinned %d times, want once", tc.reason, unpinned)
				}
			})
		})
	}
}
