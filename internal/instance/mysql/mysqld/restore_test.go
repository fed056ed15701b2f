package mysqld

import (
	"context"
	"io"
	"testing"
)

// TestRestoreEnds: what a restore fetched is let go of when it fails, although nothing was executed.
func TestRestoreEnds(t *testing.T) {
	var fetched context.Context
	fetch := func(ctx context.Context, _ string) (Replay, error) {
		fetched = ctx   //nolint:fatcontext // It is what is tested.
		return nil, nil //nolint:nilnil // There is nothing to execute.
	}
	accept := func(context.Context) error { return nil }
	// There is no certificate by which other servers connect.
	if err := Restore(t.Context(), "mysqld", Files{Volume: t.TempDir()}, Options{}, fetch, accept, io.Discard); err == nil {
		t.Error("Restore(): no error")
	}
	if fetched == nil || fetched.Err() == nil {
		t.Error("the context of what was fetched has not ended")
	}
}
