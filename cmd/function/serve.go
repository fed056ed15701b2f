package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// stopPatience is how long calls in progress may take after the drain. Both together end before the
// pod's grace period of 30 seconds.
const stopPatience = 15 * time.Second

// server is the gRPC server of the function. The server of the SDK neither finishes calls before it
// stops, nor limits the age of a connection.
type server struct {
	*grpc.Server

	health *health.Server
	drain  time.Duration
}

// newServer returns a server for the calls of a function.
//
// Crossplane's client spreads calls over the pods that it has resolved, and resolves the name again
// only when it loses a connection. So each connection is closed after MaxConnectionAge, without
// loss of a call: a pod that was added in the meantime gets its share.
func newServer(c *cli, fn fnv1.FunctionRunnerServiceServer) (*server, error) {
	creds, err := c.credentials()
	if err != nil {
		return nil, err
	}
	calls := grpcprometheus.NewServerMetrics()
	s := &server{
		Server: grpc.NewServer(
			grpc.Creds(creds),
			grpc.MaxRecvMsgSize(c.MaxRecvMessageSize<<20),
			grpc.UnaryInterceptor(calls.UnaryServerInterceptor()),
			grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: c.MaxConnectionAge}),
		),
		health: health.NewServer(),
		drain:  c.DrainDelay,
	}
	fnv1.RegisterFunctionRunnerServiceServer(s, fn)
	healthv1.RegisterHealthServer(s, s.health)
	calls.InitializeMetrics(s)
	if err := prometheus.Register(calls); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	return s, nil
}

// credentials returns what the flags request. --insecure takes precedence over a folder of
// certificates, which may be set in the environment.
func (c *cli) credentials() (credentials.TransportCredentials, error) {
	switch {
	case c.Insecure:
		return insecure.NewCredentials(), nil
	case c.TLSCertsDir == "":
		return nil, errors.New("cannot serve without certificates: name their folder with --tls-certs-dir, or set --insecure for development")
	}
	creds, err := newRenewed(c.TLSCertsDir)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificates in %s: %w", c.TLSCertsDir, err)
	}
	return creds, nil
}

// serve serves calls until ctx ends, and then stops gracefully: it continues for as long as clients
// may still resolve this pod, then refuses new connections and finishes the calls in progress.
// Calls that take longer than stopPatience are ended, with an error.
func (s *server) serve(ctx context.Context, lis net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(lis) }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve calls: %w", err)
	case <-ctx.Done():
	}

	s.health.Shutdown()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve calls: %w", err)
	case <-time.After(s.drain):
	}

	finished := make(chan struct{})
	go func() { s.GracefulStop(); close(finished) }()
	select {
	case <-finished:
		return nil
	case <-time.After(stopPatience):
		s.Stop()
		return fmt.Errorf("cannot finish the calls under way in %s: they were ended", stopPatience)
	}
}

// serveMetrics serves Prometheus metrics at an address until the process ends, or nothing
// if the address is empty.
func serveMetrics(ctx context.Context, network, address string) error {
	if address == "" {
		return nil
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return fmt.Errorf("cannot serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.Handler())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = srv.Serve(lis) }()
	return nil
}
