// Command appconfig measures how the provider rolls configuration out: to 200 workloads of one
// AppConfig, and to 5,000 workloads of 1,000 AppConfigs. It starts its own API server and the
// provider as it is shipped, counts the requests between the two, and simulates the Deployment
// controller. The Deployments have no pods, so that only the provider is measured.
//
// For comparison it measures the published method of Stakater Reloader with the same edits: for
// each event it lists the workload kinds in the namespace, and updates each workload that refers
// to the changed object (https://github.com/stakater/Reloader, internal/pkg/handler). The method
// is simulated here; Reloader itself is not run.
//
//	make bench-appconfig
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Workloads  int    `default:"200"  help:"Workloads of the one AppConfig."`
	AppConfigs int    `default:"1000" help:"AppConfigs of the fleet."`
	Each       int    `default:"5"    help:"Workloads of each AppConfig of the fleet."`
	Namespaces int    `default:"50"   help:"Namespaces that the fleet is in."`
	Edits      int    `default:"200"  help:"Edits whose latency is measured."`
	Root       string `default:"."    help:"Root of the repository."`
	Keep       bool   `help:"Say where the logs are, and leave them behind."`
}

// Run runs all measurements.
func (c *cli) Run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "bench-appconfig-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	if c.Keep {
		fmt.Println("logs are in", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	b := &bench{cli: c, dir: dir}
	defer b.stop()
	if err := b.start(ctx); err != nil {
		return err
	}
	for _, measure := range []func(context.Context) error{b.one, b.storm, b.fleet, b.restart} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var c cli
	k := kong.Parse(&c, kong.Name("appconfig"), kong.Description("Measures rollouts of configuration."), kong.BindTo(ctx, (*context.Context)(nil)))
	err := k.Run()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
