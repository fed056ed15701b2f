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

// hurriedFor is how long a pod has at most that is killed in a moment. A server that
// runs after that was not killed, and archives as ever.
const hurriedFor = 10 * time.Second

// ErrHurried is of a segment that is left to another server, since this one is killed
// in a moment.
var ErrHurried = errors.New("the pod is killed in a moment: the server that leads next archives this segment")

// exitHurried is what the archive command ends with then. PostgreSQL's archiver tries
// again after any exit code up to 125, and ends after a greater one.
const exitHurried = 130

// ExitCode of the archive command after Push.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrHurried):
		return exitHurried
	}
	return 1
}

// Hurry has the server stop without archiving what it has written last: a server that
// is stopped switches to a new segment and waits for the archive command, which can take
// longer than the pod has. Whatever is missing in the archive the server that takes over
// archives.
func (c Config) Hurry() error {
	if err := os.WriteFile(c.hurriedFile(), nil, 0o600); err != nil {
		return fmt.Errorf("cannot have the server stop without archiving: %w", err)
	}
	return nil
}

// hurriedPoll is how often an archive command that runs looks whether there is time for it.
const hurriedPoll = 20 * time.Millisecond

// unhurried is a context that ends, because of ErrHurried, once there is no time to
// archive: where a pod was deleted by force its network may end before it does, and a store
// that cannot be reached any more would be waited for.
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

// hurried says whether the pod is killed in a moment.
func (c Config) hurried() bool {
	info, err := os.Stat(c.hurriedFile())
	return err == nil && time.Since(info.ModTime()) < hurriedFor
}
