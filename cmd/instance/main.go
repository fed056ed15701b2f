// Command instance runs beside every server of a DatabaseCluster, and before
// one stops.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance/manager"
)

// cli is the command's flags.
type cli struct {
	Run  run  `cmd:"" help:"Run beside a server until it is stopped."`
	Stop stop `cmd:"" help:"Prepare the server for being stopped: hand over, or wait for the last write."`
}

type run struct{ manager.Config }

// Run until a signal.
func (r *run) Run(log *slog.Logger) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	m, err := manager.New(r.Config, config, log)
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

type stop struct{ manager.Config }

// Run once, and succeed: nothing is to hold up the server's own stop.
func (s *stop) Run(log *slog.Logger) error { //nolint:unparam // kong wants an error
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Info("Cannot reach the API server", "error", err.Error())
		return nil
	}
	manager.Stop(context.Background(), s.Config, config, log)
	return nil
}

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx := kong.Parse(&cli{}, kong.Description("The instance manager of a DatabaseCluster's servers."))
	ctx.FatalIfErrorf(ctx.Run(log))
}
