package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// lookPeriod is how often mounted files are checked for changes.
const lookPeriod = 5 * time.Second

// Serve runs pgBackRest's server until the context ends. Only clients with the cluster's
// certificate may read the server's files through it. It reads a new certificate when one is
// mounted.
func Serve(ctx context.Context, c Config) error {
	cmd := exec.CommandContext(ctx, pgbackrest.Program, "--config="+filepath.Join(c.Repository, pgbackrest.FileConfig), "--log-level-stderr=warn", "server") //nolint:gosec // the arguments are fixed or of this pod
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start pgBackRest's server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	before := mounted(c.Repository)
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				return nil //nolint:nilerr // it ended because the context did
			}
			if err == nil {
				err = errors.New("it ended by itself")
			}
			return fmt.Errorf("cannot serve: pgBackRest's server ended: %w", err)
		case <-time.After(lookPeriod):
		}
		if now := mounted(c.Repository); now != before {
			before = now
			if err := cmd.Process.Signal(syscall.SIGHUP); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("cannot have pgBackRest's server read its new certificate: %w", err)
			}
		}
	}
}

// mounted returns a text that changes whenever the kubelet writes the files again: the kubelet
// then replaces the target of a link.
func mounted(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		return ""
	}
	return target
}
