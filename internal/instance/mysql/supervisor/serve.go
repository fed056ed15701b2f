package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

const (
	// stuckAfter is how long a pass may take, and silentAfter how long a server that has answered
	// since its start may not answer, before the container is restarted.
	stuckAfter  = 60 * time.Second
	silentAfter = 30 * time.Second

	// freshFor is how long a report counts.
	freshFor = 5 * time.Second
)

// Serve serves probes, this server's report and metrics until the context ends.
func (s *Supervisor) Serve(ctx context.Context, address string, by control.TLS, metrics http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen at %s: %w", address, err)
	}
	server := &http.Server{
		Handler: control.Certified(s.handler(metrics)), TLSConfig: by.Server(),
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		ErrorLog: control.ErrorLog(s.log, "The supervisor's API"),
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve at %s: %w", address, err)
	}
	return nil
}

func (s *Supervisor) handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET "+StatusPath, func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "the certificate of a server of this cluster is needed", http.StatusForbidden)
			return
		}
		report, err := s.Report(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report)
	})
	mux.HandleFunc("GET "+instance.LivenessPath, probe(func() error { return s.alive(time.Now()) }))
	mux.HandleFunc("GET "+instance.ReadinessPath, probe(func() error { return s.ready(time.Now()) }))
	return mux
}

func probe(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

// alive returns an error if the server or its supervisor has to be started anew.
func (s *Supervisor) alive(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.at.IsZero() && now.Sub(s.at) > stuckAfter:
		return fmt.Errorf("the supervisor has not observed the server for %s", now.Sub(s.at).Round(time.Second))
	case !s.answered.IsZero() && now.Sub(s.answered) > silentAfter:
		return fmt.Errorf("MySQL has not answered for %s", now.Sub(s.answered).Round(time.Second))
	}
	return nil
}

// ready returns an error unless the server is a member of a group that makes progress.
func (s *Supervisor) ready(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case now.Sub(s.at) > freshFor:
		return errors.New("it is not known whether the server is in its group")
	case s.forming:
		// It serves clients again in a moment: they need not find it again.
		return nil
	case s.report.State != group.Online:
		return fmt.Errorf("the server is %s in its group", strings.ToLower(string(s.report.State)))
	case s.report.Blocked():
		return errors.New("the server sees no majority of its group")
	}
	return nil
}
