package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
)

// hurriedFor is how long a call of Hurry takes effect. No pod that is about to be killed lives
// longer: a server that runs after that was not killed, and archives as usual.
const hurriedFor = 10 * time.Second

// ErrHurried is the error for a segment that is left to another server, since this one is
// about to be killed.
var ErrHurried = errors.New("the pod is killed in a moment: the server that leads next archives this segment")

// exitHurried is the exit code of the archive command for ErrHurried. PostgreSQL's archiver
// retries after any exit code up to 125, and ends after a greater one.
const exitHurried = 130

// ExitCode returns the exit code of the archive command for the result of Push.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrHurried):
		return exitHurried
	}
	return 1
}

// Hurry has the server stop without archiving what it has written last. A server that is
// stopped switches to a new segment and waits for the archive command, which can take longer
// than the pod has. The server that takes over archives whatever is missing in the archive.
func (c Config) Hurry() error {
	if err := os.WriteFile(c.hurriedFile(), nil, 0o600); err != nil {
		return fmt.Errorf("cannot have the server stop without archiving: %w", err)
	}
	return nil
}

// hurriedPoll is how often a running archive command checks whether Hurry was called.
const hurriedPoll = 20 * time.Millisecond

// unhurried returns a context that is cancelled with ErrHurried once Hurry is called. The
// network of a pod that was deleted by force may end before the pod does, and without this the
// archive command would wait for a store that cannot be reached any more.
func (c Config) unhurried(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for poll := time.NewTicker(hurriedPoll); ; {
			select {
			case <-ctx.Done():
				poll.Stop()
				return
			case <-poll.C:
				if c.hurried() {
					cancel(ErrHurried)
				}
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (c Config) hurriedFile() string { return filepath.Join(c.Socket, instance.HurriedFile) }

// hurried reports whether Hurry was called within the last hurriedFor.
func (c Config) hurried() bool {
	info, err := os.Stat(c.hurriedFile())
	return err == nil && time.Since(info.ModTime()) < hurriedFor
}
