//go:build e2e

package postgresql

import (
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type (
	notes = suite.Notes
	check = suite.Check
)

// feature is a list of checks that share a database.
type feature struct {
	*features.FeatureBuilder

	namespace string
}

func newFeature(name, namespace string) feature {
	return feature{features.New(name), namespace}
}

// quick check, which is always made.
func (f feature) quick(name string, c check) feature {
	f.Assess(name, tests.Assess(c, f.namespace))
	return f
}

// full check, which is made when everything is asked for.
func (f feature) full(name string, c check) feature {
	if tests.Full() {
		f.quick(name, c)
	}
	return f
}

// repeats of what may go wrong once in a while.
func repeats() int {
	if tests.Full() {
		return 3
	}
	return 1
}
