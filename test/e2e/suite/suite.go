// Package suite is how the checks of one folder are run: connected to a
// cluster, one line each, with what explains a failure kept.
package suite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Suite of checks.
type Suite struct {
	// Cluster that the checks look at. It can be used once Main runs them.
	Cluster *harness.Cluster

	// Cleanup removes what checks have made outside of their namespaces. It is called
	// once those are gone, before the checks and after them.
	Cleanup func() error

	name        string
	env         env.Environment
	full, keep  *bool
	out, checks *string
}

// New suite, with the flags that the command test/e2e/run sets. All its namespaces
// begin with its name, so that suites may run beside each other.
func New(name string) *Suite {
	return &Suite{
		name:    name,
		Cluster: &harness.Cluster{},
		Cleanup: func() error { return nil },
		full:    flag.Bool("full", false, "Repeat what may go wrong once in a while, and load for longer."),
		out:     flag.String("out", os.TempDir(), "Folder for what explains failures, and what else is kept."),
		keep:    flag.Bool("keep", false, "Leave namespaces behind."),
		checks:  flag.String("checks", "", "Run only checks whose name matches this regular expression."),
	}
}

// Full tells whether everything is asked for, not only what is quick.
func (s *Suite) Full() bool { return *s.full }

// Main runs the tests of a package and exits.
func (s *Suite) Main(m *testing.M) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cfg := envconf.NewWithKubeConfig(os.Getenv("KUBECONFIG"))
	if *s.checks != "" {
		if _, err := regexp.Compile(*s.checks); err != nil {
			fmt.Fprintln(os.Stderr, "cannot parse -checks:", err)
			os.Exit(1)
		}
		cfg.WithAssessmentRegex(*s.checks)
	}
	var err error
	if s.env, err = env.NewWithContext(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "cannot make a test environment:", err)
		os.Exit(1)
	}
	s.env.Setup(s.connect, s.sweep)
	s.env.Finish(func(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
		if *s.keep {
			return ctx, nil
		}
		// Also after an interrupt, when ctx has ended.
		return s.sweep(context.WithoutCancel(ctx), cfg)
	})
	code := s.env.Run(m)
	stop()
	os.Exit(code)
}

// Test the features in their order.
func (s *Suite) Test(t *testing.T, features ...types.Feature) {
	t.Helper()
	s.env.Test(t, features...)
}

// connect to the cluster.
func (s *Suite) connect(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	client, err := cfg.NewClient()
	if err != nil {
		return ctx, fmt.Errorf("cannot use KUBECONFIG %s: %w", cfg.KubeconfigFile(), err)
	}
	c, err := harness.NewCluster(client.RESTConfig())
	if err != nil {
		return ctx, err
	}
	if _, err := c.Kube.Discovery().ServerVersion(); err != nil {
		return ctx, fmt.Errorf("cannot reach the cluster of KUBECONFIG %s: %w", cfg.KubeconfigFile(), err)
	}
	*s.Cluster = *c
	return ctx, nil
}

// sweep away what this run, or one that was killed, has left.
func (s *Suite) sweep(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	if s.Cluster.Kube == nil {
		// It was never reached.
		return ctx, nil
	}
	return ctx, errors.Join(s.Cluster.Sweep(ctx, s.name), s.Cleanup())
}
