// Command e2e runs a suite of end-to-end tests against a cluster on which Storeplane is installed:
// the one of KUBECONFIG, or else the embedded one (test/cluster). It prints one line for each check
// and then the totals. Details of failures go to stderr and to a folder.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// suites are the names of the suites, which are also their folders.
var suites = []string{"core", "postgresql", "mysql", "backup", "appconfig", "platform", "borders", "plan", "upgrade"}

// soaks are the suites that have a soak.
var soaks = []string{"postgresql", "mysql"}

type cli struct {
	Suite  string `default:"core" help:"Name of the suite to run."`
	Full   bool   `help:"Repeat what may go wrong once in a while, and load for longer."`
	Only   string `name:"run" help:"Run only checks whose name matches this regular expression, and what they build on." placeholder:"REGEXP"`
	Soak   bool   `help:"Run nothing of suite postgresql or mysql but its soak: many faults, drawn by a seed."`
	Seed   uint64 `help:"Seed of the soak. A drawn one by default."                                                      placeholder:"N"`
	Faults int    `default:"50" help:"Number of faults of the soak."`
	Keep   bool   `help:"Leave the suite's namespaces behind, to look at them. The next run removes them."`
	Out    string `help:"Folder for what explains failures, and for pictures. A temporary one by default."     placeholder:"DIR"`
}

var errFailed = errors.New("checks failed")

// Run runs the suite.
func (c *cli) Run(ctx context.Context) error {
	if !slices.Contains(suites, c.Suite) {
		return fmt.Errorf("cannot run suite %q: the suites are %s", c.Suite, strings.Join(suites, ", "))
	}
	if c.Soak {
		if !slices.Contains(soaks, c.Suite) {
			return fmt.Errorf("cannot soak suite %q: choose one of %s", c.Suite, strings.Join(soaks, ", "))
		}
		c.Seed = cmp.Or(c.Seed, 1+rand.Uint64N(1<<32)) //nolint:gosec // The seed is no secret: it is printed.
		fmt.Printf("seed %[1]d: make soak SUITE=%[2]s SEED=%[1]d draws the same faults\n", c.Seed, c.Suite)
	}
	env, err := environment(ctx)
	if err != nil {
		return err
	}
	if c.Out == "" {
		if c.Out, err = os.MkdirTemp("", "storeplane-e2e-"); err != nil {
			return fmt.Errorf("cannot make a folder for what explains failures: %w", err)
		}
	}
	if c.Out, err = filepath.Abs(c.Out); err != nil {
		return fmt.Errorf("cannot use folder %s: %w", c.Out, err)
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return fmt.Errorf("cannot make folder %s: %w", c.Out, err)
	}

	r := &report{out: os.Stdout, details: os.Stderr}
	err = c.test(ctx, env, r)
	r.finish(err)
	if r.failed == 0 {
		// The folder is empty unless a check has saved something.
		if err := os.Remove(c.Out); err != nil {
			fmt.Fprintln(os.Stderr, "What was kept is in", c.Out)
		}
		return nil
	}
	fmt.Fprintln(os.Stderr, "What explains the failures is in", c.Out)
	return errFailed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var c cli
	k := kong.Parse(&c, kong.Name("e2e"), kong.Description("Runs a suite of end-to-end tests."), kong.BindTo(ctx, (*context.Context)(nil)))
	err := k.Run()
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errFailed):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}
