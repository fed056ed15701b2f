// Command mysql measures commits of the MySQL of a claim, compared with the same image run plainly: a claim
// of one against a single server, and a claim of three against three servers whose group was set up by hand.
// All have the same options, resources and storage class. Only ratios within one run are meaningful, because
// machines differ and are noisy: both sides are measured in turns, and the medians are compared.
//
//	make bench-mysql
package main

import (
	"context"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// namespace holds all objects of the benchmark.
const namespace = "e2e-bench-mysql"

type cli struct {
	For     time.Duration `default:"20s" help:"Length of each measurement."`
	Rounds  int           `default:"5"   help:"Measurements of each side."`
	Clients int           `default:"4"   help:"Connections that commit."`
	Keep    bool          `help:"Leave the namespace behind."`
}

// Run runs all comparisons.
func (c *cli) Run(ctx context.Context) error {
	return harness.Bench(ctx, "bench-mysql", namespace, c.Keep, func(cluster *harness.Cluster) error {
		b := &bench{cli: c, cluster: cluster}
		if err := b.start(ctx); err != nil {
			return err
		}
		return b.all(ctx)
	})
}

func main() { harness.BenchMain("mysql", "Measures the MySQL of a claim.", &cli{}) }
