//go:build e2e

package platform

import (
	"context"
	"time"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type notes = suite.Notes

// Timeouts.
const (
	// soon is for what takes one or two reconciles.
	soon = 45 * time.Second
	// settled is for a change of a running EcommercePlatform.
	settled = 4 * time.Minute
	// started is for an EcommercePlatform to start while the machine is busy.
	started = 6 * time.Minute
)

// once records what was done for all checks of the run.
var once = suite.Once{}

// namespace creates a namespace of the suite unless an earlier check has.
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

// skipped returns the error of a check that cannot run because something is missing.
func skipped(needs error) error { return suite.SkippedError(needs.Error()) }
