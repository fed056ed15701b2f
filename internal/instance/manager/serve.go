package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// serve serves probes, metrics and the manager's API until the context ends. The channel gets
// the error with which it ended, or nil.
func (m *Manager) serve(ctx context.Context) (<-chan error, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w", m.Address, err)
	}
	server := &http.Server{
		Handler: control.Certified(m.handler()), TLSConfig: m.control().Server(),
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		ErrorLog: control.ErrorLog(m.Log, "The manager's API"),
	}
	done := make(chan error, 1)
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			done <- fmt.Errorf("cannot serve at %s: %w", m.Address, err)
			return
		}
		done <- nil
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return done, nil
}

func (m *Manager) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+instance.HealthyPath, func(http.ResponseWriter, *http.Request) {})
	// A server that starts may copy data, so the volume has to be this cluster's and have its
	// size first.
	mux.HandleFunc("GET "+instance.StartedPath, func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case !m.owned.Load():
			http.Error(w, "the volume is not known to be this cluster's", http.StatusServiceUnavailable)
		case !m.sized.Load():
			http.Error(w, "waiting for the volume to be expanded", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST "+patroni.ReleasePath, m.admitted(m.serveRelease))
	mux.HandleFunc("POST "+patroni.FencePath, m.admitted(m.serveFence))
	mux.HandleFunc("POST "+patroni.GonePath, m.admitted(m.serveGone))
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.metrics.Registry, promhttp.HandlerOpts{}))
	return mux
}

// admitted wraps a handler so that only clients with the password of Patroni's API may call
// it.
func (m *Manager) admitted(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok || !m.patroni.Admits(user, password) {
			http.Error(w, "the password of Patroni's API is needed", http.StatusUnauthorized)
			return
		}
		handle(w, r)
	}
}
