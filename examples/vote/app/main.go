// Command vote lets people vote on one question. The question is in its configuration, and not in
// the image.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// shutdownWithin is the time for requests that are being served when the pod is stopped. It is
// below the 30 s that Kubernetes gives a pod.
const shutdownWithin = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	log := slog.New(slog.NewJSONHandler(os.Stdout, nil)).With("program", "vote")
	if err := run(ctx, log); err != nil {
		log.Error("Failed", "error", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger) error {
	poll, err := ReadPoll(os.Getenv)
	if err != nil {
		return err
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", port))
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	log.Info("Serving", "poll", poll.Name, "options", len(poll.Options), "address", listener.Addr().String())
	return serve(ctx, listener, NewBooth(poll).Handler())
}

// serve serves requests until ctx ends, and then finishes those that have begun.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	if err := srv.Shutdown(bound); err != nil {
		return errors.Join(fmt.Errorf("cannot finish all requests: %w", err), srv.Close())
	}
	return nil
}
