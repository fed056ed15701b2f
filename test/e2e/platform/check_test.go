//go:build e2e

package platform

import (
	"context"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type notes = suite.Notes

// Bounds of waiting.
const (
	// soon is for what takes a reconcile or two.
	soon = 45 * time.Second
	// settled is for a running shop to take up a change.
	settled = 4 * time.Minute
	// started is for a shop to come up from nothing while the machine is busy.
	started = 6 * time.Minute
)

// feature is a list of checks that share namespaces.
type feature struct {
	*features.FeatureBuilder

	namespaces []string
}

func newFeature(name string, namespaces ...string) feature {
	return feature{features.New(name), namespaces}
}

// quick check, which is always made.
func (f feature) quick(name string, c suite.Check) feature {
	f.Assess(name, tests.Assess(c, f.namespaces...))
	return f
}

// full check, which is made when everything is asked for.
func (f feature) full(name string, c suite.Check) feature {
	if tests.Full() {
		f.quick(name, c)
	}
	return f
}

// made is what was made for all checks of the run.
var made = map[string]bool{}

// once does what has not been done yet.
func once(what string, do func() error) error {
	if made[what] {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	made[what] = true
	return nil
}

// namespace of the suite's own.
func namespace(ctx context.Context, name string) error {
	err := once("cramped", func() error {
		_, err := cluster.Cramp(ctx, suiteName)
		return err
	})
	if err != nil {
		return err
	}
	return once("namespace "+name, func() error { return cluster.CreateNamespaceOf(ctx, suiteName, name) })
}

// skipped because of what a check needs.
func skipped(needs error) error { return suite.SkippedError(needs.Error()) }
