// Command function serves Storeplane's composition functions over gRPC.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/crossplane/function-sdk-go"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/metrics"
)

// cli holds the command's flags.
type cli struct {
	images.Flags

	Debug bool `help:"Log every call, not only those that were refused." short:"d"`

	Network            string        `default:"tcp"                                  help:"Network on which to listen for gRPC calls."`
	Address            string        `default:":9443"                                help:"Address at which to listen for gRPC calls."`
	TLSCertsDir        string        `env:"TLS_SERVER_CERTS_DIR"                     help:"Folder with tls.crt, tls.key and ca.crt. Clients must present a certificate of that CA."`
	Insecure           bool          `help:"Serve without TLS, for development. Not for use in a cluster."`
	MaxRecvMessageSize int           `default:"16"                                   help:"Largest request, in MiB."`
	MaxConnectionAge   time.Duration `default:"2m"                                   help:"How long a connection is kept, so that clients find new replicas."`
	DrainDelay         time.Duration `default:"10s"                                  help:"How long to go on serving after SIGTERM, until clients and DNS have let go of this replica."`
	MetricsAddress     string        `default:":8080"                                help:"Address at which to serve Prometheus metrics. Empty for none."`
	Review             bool          `help:"Print placeholders instead of drawing random values, for offline review. Not for use in a cluster."`
}

// gcPercent trades some MiB of memory for fewer collections: what a call
// allocates is many times what the function keeps. GOGC overrides it.
const gcPercent = 250

// Run serves calls until SIGTERM.
func (c *cli) Run() error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if err := fitBuffers(); err != nil {
		return err
	}
	log, err := function.NewLogger(c.Debug)
	if err != nil {
		return err
	}
	calls := metrics.NewCalls()
	own, err := c.Set()
	if err != nil {
		return err
	}
	opts := []functions.Option{
		functions.WithLogger(log),
		functions.WithImages(own),
		functions.WithObserver(calls.Observe),
	}
	if c.Review {
		opts = append(opts, functions.WithReview())
	}
	f := functions.New(opts...)
	calls.Running(functions.MaxCalls(), f.Running)
	srv, err := newServer(c, f)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	lis, err := (&net.ListenConfig{}).Listen(ctx, c.Network, c.Address)
	if err != nil {
		return fmt.Errorf("cannot listen for calls: %w", err)
	}
	if err := serveMetrics(ctx, c.Network, c.MetricsAddress); err != nil {
		return err
	}
	return srv.serve(ctx, lis)
}

func main() {
	ctx := kong.Parse(&cli{}, kong.Description("Storeplane's composition functions."))
	ctx.FatalIfErrorf(ctx.Run())
}
