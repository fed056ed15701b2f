// Command backup runs in the pods that work for a Backup or a Restore: it does the
// task in its environment, and reports in the pod's termination message.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // images have no time zones

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/run"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// memory that we take ourselves: a pod has 128 MiB for us and for the tool that
// dumps.
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
