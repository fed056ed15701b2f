package archive

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

func TestAdvise(t *testing.T) {
	store := &pgbackrest.Error{Command: "archive-get", Code: 103, Message: "unable to find a valid repository"}
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Early": {reason: "Another time helps.", err: fmt.Errorf("%w x", recovery.ErrEarly), want: "cannot restore: the archive ends before the time x: choose an earlier time, or none for all that there is"},
		"Hole":  {reason: "A time before it helps.", err: fmt.Errorf("%w: x", recovery.ErrHole), want: "cannot restore: the archive has a hole: x: choose a time before that change"},
		"Store": {reason: "No other time does.", err: store, want: "cannot get WAL: pgBackRest reports: unable to find a valid repository"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := advise(tc.err)
			if diff := cmp.Diff(tc.want, got.Error()); diff != "" || !errors.Is(got, tc.err) {
				t.Errorf("%s\nadvise(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if err := advise(nil); err != nil {
		t.Errorf("advise(nil): got %v", err)
	}
}
