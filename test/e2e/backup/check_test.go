//go:build e2e

package backup

import (
	"time"

	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type notes = suite.Notes

// Bounds of waiting.
const (
	// soon is for what takes a reconcile or two.
	soon = time.Minute
	// started is for a server to start.
	started = 3 * time.Minute
	// done is for a backup, a verification or a restore.
	done = 5 * time.Minute
	// givenUp is for what is tried three times first, each time for as long as a
	// store may be silent.
	givenUp = 10 * time.Minute
)

// feature is a list of checks that share a namespace.
type feature struct {
	*features.FeatureBuilder

	namespace string
}

func newFeature(name, namespace string) feature {
	return feature{features.New(name), namespace}
}

// quick check, which is always made.
func (f feature) quick(name string, c suite.Check) feature {
	f.Assess(name, tests.Assess(c, f.namespace))
	return f
}

// full check, which is made when everything is asked for.
func (f feature) full(name string, c suite.Check) feature {
	if tests.Full() {
		f.quick(name, c)
	}
	return f
}
