//go:build e2e

package platform

import (
	"context"
	"time"

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

// once is what was done for all checks of the run.
var once = suite.Once{}

// namespace of the suite's own.
func namespace(ctx context.Context, name string) error {
	err := once.Do("cramped", func() error {
		_, err := cluster.Cramp(ctx, suiteName)
		return err
	})
	if err != nil {
		return err
	}
	return once.Do("namespace "+name, func() error { return cluster.CreateNamespaceOf(ctx, suiteName, name) })
}

// skipped because of what a check needs.
func skipped(needs error) error { return suite.SkippedError(needs.Error()) }
