// Command frontend serves the shop's pages, and passes requests to its API on to the backend.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
	"github.com/storeplane/storeplane/examples/shop/internal/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	log := serve.NewLog("frontend")
	if err := run(ctx, log); err != nil {
		log.Error("Failed", "error", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger) error {
	address := os.Getenv("BACKEND_URL")
	if address == "" {
		return errors.New("cannot start without BACKEND_URL")
	}
	backend, err := web.NewBackend(address)
	if err != nil {
		return err
	}
	srv, err := serve.New(log)
	if err != nil {
		return err
	}
	listener, err := serve.Listen()
	if err != nil {
		return err
	}
	shop := &web.Server{Backend: backend, Log: log, Draining: srv.Draining}
	return srv.Run(ctx, listener, shop.Handler())
}
