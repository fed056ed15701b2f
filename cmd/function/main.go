// Command function serves Storeplane's composition functions over gRPC.
package main

import (
	"os"
	"runtime/debug"

	"github.com/alecthomas/kong"
	"github.com/crossplane/function-sdk-go"
	"google.golang.org/grpc/health"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/metrics"
)

// cli is the command's flags.
type cli struct {
	Debug bool `help:"Log every call, not only those that were refused." short:"d"`

	Network            string `default:"tcp"                                  help:"Network on which to listen for gRPC calls."`
	Address            string `default:":9443"                                help:"Address at which to listen for gRPC calls."`
	TLSCertsDir        string `env:"TLS_SERVER_CERTS_DIR"                     help:"Folder with tls.crt, tls.key and ca.crt. Clients must present a certificate of that CA."`
	Insecure           bool   `help:"Serve without TLS, for development. Not for use in a cluster."`
	MaxRecvMessageSize int    `default:"16"                                   help:"Largest request, in MiB."`
	MetricsAddress     string `default:":8080"                                help:"Address at which to serve Prometheus metrics. Empty for none."`
	ImageRegistry      string `default:"${registry}"                          env:"STOREPLANE_IMAGE_REGISTRY" help:"Registry and path of Storeplane's own images."`
	Review             bool   `help:"Print placeholders instead of drawing random values, for offline review. Not for use in a cluster."`
}

// gcPercent trades some MiB of memory for fewer collections: what a call
// allocates is many times what the function keeps. GOGC overrides it.
const gcPercent = 250

// Run serves until it is stopped.
func (c *cli) Run() error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log, err := function.NewLogger(c.Debug)
	if err != nil {
		return err
	}
	calls := metrics.NewCalls()
	if c.ImageRegistry == "" {
		c.ImageRegistry = functions.DefaultImageRegistry
	}
	opts := []functions.Option{
		functions.WithLogger(log),
		functions.WithImageRegistry(c.ImageRegistry),
		functions.WithObserver(calls.Observe),
	}
	if c.Review {
		opts = append(opts, functions.WithReview())
	}
	return function.Serve(functions.New(opts...),
		function.Listen(c.Network, c.Address),
		function.MTLSCertificates(c.TLSCertsDir),
		function.Insecure(c.Insecure),
		function.MaxRecvMessageSize(c.MaxRecvMessageSize*1024*1024),
		function.WithHealthServer(health.NewServer()),
		function.WithMetricsServer(c.MetricsAddress),
	)
}

func main() {
	ctx := kong.Parse(&cli{}, kong.Description("Storeplane's composition functions."), kong.Vars{"registry": functions.DefaultImageRegistry})
	ctx.FatalIfErrorf(ctx.Run())
}
