// Command scale measures many claims on one machine. Crossplane, the function, the provider and
// the API server are real ones, on the cluster of KUBECONFIG. The nodes are simulated by kwok
// (https://kwok.sigs.k8s.io), so that Deployments, StatefulSets and Jobs become ready without
// containers. The instance managers of databases, which would run in those containers, are
// simulated too.
//
// For each number of claims it reports the time until all are Ready, the requests to the API
// server for each claim by client, the load while the claims are at rest, how long an edit of one
// claim takes while the others are at rest, how long an edit of all takes, and what faults cause.
// Processor time and memory are those of processes on this machine, so the cluster must be the
// embedded one.
//
//	make bench-scale
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// namespace holds all claims of the benchmark.
const namespace = "bench-scale"

type cli struct {
	WebApps []int         `default:"100,300,1000" name:"webapps" help:"Numbers of WebApps."`
	Shops   []int         `default:"10,50,200"    help:"Numbers of EcommercePlatforms."`
	Nodes   int           `default:"20"           help:"Simulated nodes."`
	Edits   int           `default:"50"           help:"Edits of one claim, one after the other."`
	Rest    time.Duration `default:"2m"           help:"How long claims at rest are measured."`
	Steady  time.Duration `default:"10m"          help:"How long the most WebApps are measured once they have rested so long that they are composed from time to time. 0 to leave this out."`
	Faults  bool          `default:"true"         negatable:"" help:"Restart Crossplane, the provider's leader and the API server with the most WebApps."`
	Backups int           `default:"1000"         help:"Backups beside the most shops, with which a Restore is created after a change of the provider's leader. 0 to leave this out."`
	Alone   int           `default:"0" name:"stand-ins" help:"EcommercePlatforms of which only what the provider watches is created, without Crossplane, to measure Restores beside more of them than can be composed."`
	Leaders int           `default:"5" help:"Changes of the provider's leader after which a Restore is created. 0 to leave Restores out."`
	Kwok    string        `env:"KWOK" required:"" help:"The program kwok: see hack/kwok.sh."`
	Stages  []string      `env:"KWOK_STAGES" required:"" help:"Files with the stages of nodes and pods: see hack/kwok.sh."`
	Out     string        `help:"File whose part between the marks of this command is replaced, docs/benchmarks.md for example. Without it the tables are printed."`
	Release string        `default:"dev" help:"What is measured. Tables of other releases stay in the file."`
	Keep    bool          `help:"Leave the claims behind."`
}

// Run runs all measurements and reports the results.
func (c *cli) Run(ctx context.Context) error {
	if c.Alone > 0 && (c.Keep || c.Backups < 1 || c.Leaders < 1) {
		return errors.New("--stand-ins needs --backups and --leaders, and goes without --keep: Crossplane would compose what is kept")
	}
	if err := removeLeft(ctx); err != nil {
		return err
	}
	if _, err := harness.FindAPIServer(os.Getenv("KUBECONFIG")); c.Faults && err != nil {
		return fmt.Errorf("cannot kill the API server later: %w", err)
	}
	return harness.Bench(ctx, "bench-scale", namespace, c.Keep, func(cluster *harness.Cluster) error {
		b := &bench{cli: c, cluster: cluster}
		defer b.stop()
		if err := b.start(ctx); err != nil {
			return err
		}
		var results []result
		for _, fleet := range []struct {
			kind  kind
			sizes []int
		}{{webApps, c.WebApps}, {shops, c.Shops}} {
			for _, n := range fleet.sizes {
				if n == 0 {
					continue
				}
				r, err := b.measure(ctx, fleet.kind, n)
				if r.ready > 0 {
					// A run takes more than an hour: what fails later loses none of it.
					results = append(results, r)
					err = errors.Join(err, c.report(results))
				}
				if err != nil {
					return fmt.Errorf("cannot measure %d %s: %w", n, fleet.kind.plural, err)
				}
			}
		}
		results, err := b.measureStandIns(ctx, results)
		if err != nil {
			return err
		}
		if m := missed(results, c.Rest, c.Steady); len(m) > 0 {
			return fmt.Errorf("targets are missed:\n%s", strings.Join(m, "\n"))
		}
		return nil
	})
}

func main() { harness.BenchMain("scale", "Measures many claims on one machine.", &cli{}) }
