// Command backup measures a logical backup of about 2 GB of PostgreSQL into an
// S3 server: ours, in 128 MiB of memory, against the plain pipe, pg_dump | zstd | an
// uploader, in as much as it takes; and pgBackRest alone, as a DatabaseCluster runs it. Only
// ratios of one run mean anything: machines differ, and are noisy, so ours and the
// pipe are measured in turns, and the median counts.
//
//	make bench-backup
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// namespace of all that is made.
const namespace = "e2e-bench-backup"

type cli struct {
	Rounds int  `default:"3"       help:"Measurements of each side."`
	Rows   int  `default:"8000000" help:"Rows of the largest table."`
	Bulk   int  `default:"512"     help:"MiB of random bytes beside it."`
	Keep   bool `help:"Leave the namespace behind."`
}

// Run all measurements.
func (c *cli) Run(ctx context.Context) error {
	return harness.Bench(ctx, "bench-backup", namespace, c.Keep, func(cluster *harness.Cluster) error {
		b := &bench{cli: c, cluster: cluster}
		if err := b.start(ctx); err != nil {
			return err
		}
		return b.all(ctx)
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var c cli
	k := kong.Parse(&c, kong.Name("backup"), kong.Description("Measures backups."), kong.BindTo(ctx, (*context.Context)(nil)))
	err := k.Run()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
