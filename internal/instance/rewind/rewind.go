// Package rewind is pg_rewind as Patroni calls it, and what comes after one that
// fails.
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
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// askWithin is how long the primary may take to answer.
const askWithin = 5 * time.Second

// Rewind of a server's data.
type Rewind struct {
	// Command is pg_rewind with its arguments.
	Command []string

	// Stdout and Stderr are Patroni's to log.
	Stdout, Stderr io.Writer

	// SetAside a folder, and return where it is: pgdata.SetAside.
	SetAside func(dir, why string) (string, error)
}

// Run pg_rewind and return its exit code. After one that failed, though there is a
// primary to rewind to, PostgreSQL cannot be relied on to start with what is left
// (https://www.postgresql.org/docs/current/app-pgrewind.html), and Patroni 4.0.7
// starts it all the same and never rewinds again (Rewind.execute, Ha.recover). With
// remove_data_directory_on_rewind_failure it removes the data, and with it what only
// this server had. So the data is set aside here where there is room, and removed
// where there is none: Patroni finds an empty folder, and copies the primary.
func (r Rewind) Run(ctx context.Context) int {
	cmd := exec.CommandContext(ctx, r.Command[0], r.Command[1:]...) //nolint:gosec // Patroni's own arguments
	cmd.Stdout, cmd.Stderr = r.Stdout, r.Stderr
	err := cmd.Run()
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		r.say("cannot run pg_rewind: %v", err)
		return 1
	}
	dir, source := r.option("-D"), r.option("--source-server")
	// A signal is no failure: Patroni stops it, or the pod ends.
	if exit.Exited() && dir != "" && source != "" && isPrimary(ctx, source) {
		r.clear(dir)
	}
	return max(exit.ExitCode(), 1)
}

// option's value, or "".
func (r Rewind) option(name string) string {
	i := slices.Index(r.Command, name)
	if i < 0 || i+1 >= len(r.Command) {
		return ""
	}
	return r.Command[i+1]
}

// isPrimary says whether a server answers and takes writes. Patroni asks for one
// that does in the connection string. It is asked by libpq, which understands all of
// that string.
func isPrimary(ctx context.Context, conninfo string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, "psql", "--no-psqlrc", "--no-align", "--tuples-only", "--no-password", "--dbname="+conninfo, "--command=SELECT pg_is_in_recovery()").Output() //nolint:gosec // see above
	return err == nil && strings.TrimSpace(string(out)) == "f"
}

// clear the place of the data.
func (r Rewind) clear(dir string) {
	aside, err := r.SetAside(dir, "rewind")
	state := instance.RewindState{Message: "pg_rewind failed, and the data is set aside in folder " + filepath.Base(aside) + " of its volume"}
	if err != nil {
		if !errors.Is(err, pgdata.ErrNoRoom) {
			r.say("cannot set the data aside: %v", err)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			r.say("cannot remove the data: %v", err)
			return
		}
		state.Message = "pg_rewind failed, and the volume has no room to set the data aside"
	}
	r.say("%s", state.Message)
	// The instance manager makes an event of it.
	data, err := json.Marshal(state)
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(dir), instance.RewindStateFile), data, 0o600)
	}
	if err != nil {
		r.say("cannot report it: %v", err)
	}
}

func (r Rewind) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Stderr, format+"\n", args...)
}
