//go:build e2e

package core

import (
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

type (
	notes = suite.Notes
	check = suite.Check
)

func assess(c check, namespaces ...string) features.Func { return tests.Assess(c, namespaces...) }
