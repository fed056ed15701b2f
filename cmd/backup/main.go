// Command backup runs in the pods of Backups and Restores: it does the task in its environment, and
// reports in the pod's termination message.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // The images contain no time zones.

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/run"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// memory is the memory limit of the Go runtime, in bytes, unless GOMEMLIMIT is set. The rest of the
// pod's memory is for the tool that it runs.
const memory = 56 << 20

func main() {
	recovery.Main()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run.New(os.Stderr).Main(ctx, os.Getenv(backup.TaskVariable))) //nolint:gocritic // nothing is left to stop
}
