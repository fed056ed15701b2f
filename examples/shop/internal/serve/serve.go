// Package serve runs an HTTP server as a pod should: with timeouts, one line of log for each
// request, and a shutdown in which no request is lost.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// shutdownWithin is the longest time of a shutdown, below the 30 s that Kubernetes gives a pod.
const shutdownWithin = 20 * time.Second

// A Server is an HTTP server that can be drained.
type Server struct {
	// Delay is how long a server that is stopping still accepts requests: its removal from the
	// Service takes time to reach the nodes, and there is no way to find out when it has.
	Delay time.Duration
	Log   *slog.Logger

	draining atomic.Bool
}

// New returns a server that is configured by SHUTDOWN_DELAY (default 3s, at most 10s).
func New(log *slog.Logger) (*Server, error) {
	s := &Server{Delay: 3 * time.Second, Log: log}
	if v := os.Getenv("SHUTDOWN_DELAY"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 || d > shutdownWithin/2 {
			return nil, fmt.Errorf("cannot parse SHUTDOWN_DELAY %q: it is a duration from 0s to %s", v, shutdownWithin/2)
		}
		s.Delay = d
	}
	return s, nil
}

// Draining reports whether the server is stopping. A readiness check should then fail.
func (s *Server) Draining() bool { return s.draining.Load() }

// Listen opens the port named by PORT, by default 8080.
func Listen() (net.Listener, error) {
	port := 8080
	if v := os.Getenv("PORT"); v != "" {
		p, err := strconv.Atoi(v)
		if err != nil || p < 1 || p > 65535 {
			return nil, fmt.Errorf("cannot parse PORT %q: it is a number from 1 to 65535", v)
		}
		port = p
	}
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	return l, nil
}

// Run serves h until ctx ends, then drains and stops within 20 s.
func (s *Server) Run(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           s.closeWhileDraining(accessLog(s.Log, h)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelInfo),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	s.Log.Info("Serving", "address", l.Addr().String())

	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	s.Log.Info("Stopping, draining requests")
	s.draining.Store(true)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()

	delay := time.NewTimer(s.Delay)
	defer delay.Stop()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-delay.C:
	}
	if err := srv.Shutdown(bound); err != nil {
		return errors.Join(fmt.Errorf("cannot finish all requests: %w", err), srv.Close())
	}
	s.Log.Info("Stopped")
	return nil
}

// closeWhileDraining asks clients to open their next connection elsewhere. It does so in answers,
// since closing an idle connection could cut off a request that is already on its way.
func (s *Server) closeWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Draining() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
