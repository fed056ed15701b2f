// Package rewind runs pg_rewind for Patroni, and makes room for a copy of the primary if
// pg_rewind fails.
package rewind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
)

// askWithin is how long the primary may take to answer.
const askWithin = 5 * time.Second

// Rewind is one run of pg_rewind on a server's data.
type Rewind struct {
	// Command is pg_rewind with its arguments.
	Command []string

	// Stdout and Stderr get the output of pg_rewind, which Patroni logs.
	Stdout, Stderr io.Writer

	// SetAside moves a directory aside and returns its new path: volume.SetAside.
	SetAside func(dir, why string) (string, error)
}

// Run runs pg_rewind and returns its exit code. After a pg_rewind that failed although there
// is a primary to rewind to, PostgreSQL cannot be relied on to start with what is left
// (https://www.postgresql.org/docs/current/app-pgrewind.html), and Patroni 4.0.7 starts it all
// the same and never rewinds again (Rewind.execute, Ha.recover). With
// remove_data_directory_on_rewind_failure Patroni would remove the data, and with it what only
// this server had. So the data is set aside here if there is room, and removed if there is
// none: Patroni then finds an empty directory, and copies the primary.
func (r Rewind) Run(ctx context.Context) int {
	cmd := exec.CommandContext(ctx, r.Command[0], r.Command[1:]...) //nolint:gosec // Patroni's own arguments
	cmd.Stdout, cmd.Stderr = r.Stdout, r.Stderr
	err := cmd.Run()
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		r.sayf("cannot run pg_rewind: %v", err)
		return 1
	}
	dir, source := r.option("-D"), r.option("--source-server")
	// A signal is not a failure: Patroni stops pg_rewind, or the pod ends.
	if exit.Exited() && dir != "" && source != "" && isPrimary(ctx, source) {
		r.clear(dir)
	}
	return max(exit.ExitCode(), 1)
}

// option returns the value of an option of the command, or "".
func (r Rewind) option(name string) string {
	i := slices.Index(r.Command, name)
	if i < 0 || i+1 >= len(r.Command) {
		return ""
	}
	return r.Command[i+1]
}

// isPrimary reports whether a server answers and takes writes. The connection string is
// Patroni's, and asks for such a server. psql is used since libpq understands all of that
// string.
func isPrimary(ctx context.Context, conninfo string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, "psql", "--no-psqlrc", "--no-align", "--tuples-only", "--no-password", "--dbname="+conninfo, "--command=SELECT pg_is_in_recovery()").Output() //nolint:gosec // see above
	return err == nil && strings.TrimSpace(string(out)) == "f"
}

// clear sets the data aside, or removes it if there is no room, and reports which.
func (r Rewind) clear(dir string) {
	aside, err := r.SetAside(dir, "rewind")
	state := instance.RewindState{Message: "pg_rewind failed, and the data is set aside in folder " + filepath.Base(aside) + " of its volume"}
	if err != nil {
		if !errors.Is(err, volume.ErrNoRoom) {
			r.sayf("cannot set the data aside: %v", err)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			r.sayf("cannot remove the data: %v", err)
			return
		}
		state.Message = "pg_rewind failed, and the volume has no room to set the data aside"
	}
	r.sayf("%s", state.Message)
	// The instance manager creates an event from it.
	data, err := json.Marshal(state)
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(dir), instance.RewindStateFile), data, 0o600)
	}
	if err != nil {
		r.sayf("cannot report it: %v", err)
	}
}

func (r Rewind) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Stderr, format+"\n", args...)
}
