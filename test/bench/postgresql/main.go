// Command postgresql measures the PostgreSQL of a claim with pgbench, compared with a plain
// server of the same image: one pod with initdb and postgres, and the same parameters, resources
// and storage class. Only ratios within one run are meaningful, because machines differ and are
// noisy: both sides are measured in turns, and the medians are compared. The cost of TLS,
// synchronous replication and checksums is measured in the same way.
//
//	make bench-postgresql
package main

import (
	"context"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// namespace holds all objects of the benchmark.
const namespace = "e2e-bench-postgresql"

type cli struct {
	Seconds int  `default:"30" help:"Length of each measurement."`
	Rounds  int  `default:"3"  help:"Measurements of each side."`
	Clients int  `default:"4"  help:"Connections of pgbench."`
	Scale   int  `default:"10" help:"Scale of pgbench's tables."`
	Keep    bool `help:"Leave the namespace behind."`
}

// Run runs all comparisons.
func (c *cli) Run(ctx context.Context) error {
	return harness.Bench(ctx, "bench-postgresql", namespace, c.Keep, func(cluster *harness.Cluster) error {
		b, err := start(ctx, cluster, c)
		if err != nil {
			return err
		}
		return b.all(ctx)
	})
}

func main() { harness.BenchMain("postgresql", "Measures the PostgreSQL of a claim.", &cli{}) }
