// Package suite runs the checks of one folder against a cluster, with one line of output for each,
// and saves what explains a failure.
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

// Suite is a suite of checks.
type Suite struct {
	// Cluster is the cluster under test. It can be used once Main runs the checks.
	Cluster *harness.Cluster

	// Cleanup removes what checks have created outside of their namespaces. It is called before the
	// checks and after them, each time after the namespaces are gone.
	Cleanup func() error

	name        string
	env         env.Environment
	full, keep  *bool
	out, checks *string
}

// New returns a suite with the flags that the command test/e2e/run sets. The names of all its
// namespaces begin with the suite's name, so that suites can run at the same time.
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

// Full reports whether this is a full run and not only one of the quick checks.
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
		// Clean up also after an interrupt, when ctx has ended.
		return s.sweep(context.WithoutCancel(ctx), cfg)
	})
	code := s.env.Run(m)
	stop()
	os.Exit(code)
}

// Test runs the features in their order.
func (s *Suite) Test(t *testing.T, features ...types.Feature) {
	t.Helper()
	s.env.Test(t, features...)
}

// connect connects to the cluster.
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

// sweep removes what this run, or a killed one before it, has left behind.
func (s *Suite) sweep(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	if s.Cluster.Kube == nil {
		// The cluster was never reached.
		return ctx, nil
	}
	return ctx, errors.Join(s.Cluster.Sweep(ctx, s.name), s.Cleanup())
}
