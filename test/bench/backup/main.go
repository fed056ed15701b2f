// Command backup measures a logical backup of about 2 GB of PostgreSQL to an S3 server. It
// compares ours, in 128 MiB of memory, with the plain pipe, pg_dump | zstd | an uploader, in up
// to 1 GiB, and with pgBackRest, as a DatabaseCluster runs it. Only ratios within one run are
// meaningful, because machines differ and are noisy: ours and the pipe are measured in turns, and
// the medians are compared.
//
//	make bench-backup
package main

import (
	"context"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// namespace holds all objects of the benchmark.
const namespace = "e2e-bench-backup"

type cli struct {
	Rounds int  `default:"3"       help:"Measurements of each side."`
	Rows   int  `default:"8000000" help:"Rows of the largest table."`
	Bulk   int  `default:"512"     help:"MiB of random bytes beside it."`
	Keep   bool `help:"Leave the namespace behind."`
}

// Run runs all measurements.
func (c *cli) Run(ctx context.Context) error {
	return harness.Bench(ctx, "bench-backup", namespace, c.Keep, func(cluster *harness.Cluster) error {
		b := &bench{cli: c, cluster: cluster}
		if err := b.start(ctx); err != nil {
			return err
		}
		return b.all(ctx)
	})
}

func main() { harness.BenchMain("backup", "Measures backups.", &cli{}) }
