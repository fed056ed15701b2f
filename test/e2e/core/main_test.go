//go:build e2e

// Package core tests the main road: a claim becomes a running shop, and stays
// one through what happens to shops.
package core

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

var (
	full   = flag.Bool("full", false, "Repeat what may go wrong once in a while, and load for longer.")
	out    = flag.String("out", os.TempDir(), "Folder for what explains failures.")
	keep   = flag.Bool("keep", false, "Leave namespaces behind.")
	checks = flag.String("checks", "", "Run only checks whose name matches this regular expression.")
)

var (
	testenv env.Environment
	cluster *harness.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cfg := envconf.NewWithKubeConfig(os.Getenv("KUBECONFIG"))
	if *checks != "" {
		if _, err := regexp.Compile(*checks); err != nil {
			fmt.Fprintln(os.Stderr, "cannot parse -checks:", err)
			os.Exit(1)
		}
		cfg.WithAssessmentRegex(*checks)
	}
	var err error
	if testenv, err = env.NewWithContext(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "cannot make a test environment:", err)
		os.Exit(1)
	}
	testenv.Setup(connect, sweep)
	testenv.Finish(func(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
		if *keep {
			return ctx, nil
		}
		// Also after an interrupt, when ctx has ended.
		return sweep(context.WithoutCancel(ctx), cfg)
	})
	code := testenv.Run(m)
	stop()
	os.Exit(code)
}

// connect to the cluster.
func connect(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	client, err := cfg.NewClient()
	if err != nil {
		return ctx, fmt.Errorf("cannot use KUBECONFIG %s: %w", cfg.KubeconfigFile(), err)
	}
	if cluster, err = harness.NewCluster(client.RESTConfig()); err != nil {
		return ctx, err
	}
	if _, err := cluster.Kube.Discovery().ServerVersion(); err != nil {
		return ctx, fmt.Errorf("cannot reach the cluster of KUBECONFIG %s: %w", cfg.KubeconfigFile(), err)
	}
	return ctx, nil
}

// sweep away what this run, or one that was killed, has left.
func sweep(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	return ctx, cluster.Sweep(ctx)
}

// TestCore lists the checks in their order. Those of one feature share a shop.
func TestCore(t *testing.T) {
	testenv.Test(t,
		installation(),
		developmentShop(),
		neighbours(),
		badInput(),
		productionShop(),
		developmentShopEnds(),
	)
}
