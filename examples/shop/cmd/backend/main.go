// Command backend is the shop's API. It serves the API, migrates its database, does both, or
// deletes old carts.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/api"
	"github.com/storeplane/storeplane/examples/shop/internal/cache"
	"github.com/storeplane/storeplane/examples/shop/internal/serve"
	"github.com/storeplane/storeplane/examples/shop/internal/store"
)

const (
	// migrateWithin is how long migrate waits for its database.
	migrateWithin = 2 * time.Minute

	// pruneAfter is how long an untouched cart is kept: as long as a browser keeps its session.
	pruneAfter = 30 * 24 * time.Hour
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	log := serve.NewLog("backend")
	if err := run(ctx, log, os.Args[1:]); err != nil {
		log.Error("Failed", "error", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, args []string) error {
	command := "serve"
	if len(args) > 0 {
		command = args[0]
	}
	if len(args) > 1 {
		return fmt.Errorf("cannot use arguments after %q", command)
	}
	uri := os.Getenv("DATABASE_URL")
	if uri == "" {
		return errors.New("cannot start without DATABASE_URL")
	}
	db, err := store.Open(ctx, uri)
	if err != nil {
		return err
	}
	defer db.Close()

	switch command {
	case "serve":
		return runServe(ctx, log, db)
	case "migrate":
		return runMigrate(ctx, log, db)
	case "start":
		if err := runMigrate(ctx, log, db); err != nil {
			return err
		}
		return runServe(ctx, log, db)
	case "prune":
		return runPrune(ctx, log, db)
	}
	return fmt.Errorf("cannot run %q: the commands are serve, migrate, start and prune", command)
}

func runServe(ctx context.Context, log *slog.Logger, db *store.Store) error {
	// Without REDIS_URL it is nil, and carts are in the database only.
	var carts *cache.Carts
	if url := os.Getenv("REDIS_URL"); url != "" {
		var err error
		if carts, err = cache.Open(url, os.Getenv("REDIS_CA_FILE"), log); err != nil {
			return err
		}
		defer carts.Close()
	}
	srv, err := serve.New(log)
	if err != nil {
		return err
	}
	listener, err := serve.Listen()
	if err != nil {
		return err
	}
	shop := &api.Server{Store: db, Cache: carts, Log: log, Draining: srv.Draining}
	return srv.Run(ctx, listener, shop.Handler())
}

func runMigrate(ctx context.Context, log *slog.Logger, db *store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, migrateWithin)
	defer cancel()
	applied, err := db.Migrate(ctx, log)
	if err != nil {
		return err
	}
	for _, name := range applied {
		log.Info("Applied migration", "migration", name)
	}
	log.Info("The schema is up to date", "applied", len(applied))
	return nil
}

func runPrune(ctx context.Context, log *slog.Logger, db *store.Store) error {
	pruned, err := db.PruneCarts(ctx, pruneAfter)
	if err != nil {
		return err
	}
	log.Info("Deleted old carts", "carts", pruned, "untouchedFor", pruneAfter.String())
	return nil
}
