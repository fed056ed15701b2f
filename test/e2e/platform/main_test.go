//go:build e2e

// Package platform tests the platform from the view of its users: a team without rights outside of
// its namespace applies the published claim, opens it to customers, and is refused what a guardrail
// forbids. The platform team observes all of it, and a pod of the platform may be lost.
package platform

import (
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

const suiteName = "e2e-platform"

var (
	tests   = suite.New(suiteName)
	cluster = tests.Cluster
)

func TestMain(m *testing.M) { tests.Main(m) }

// TestPlatform: the checks pass in their order. Without -full only the quick ones run.
func TestPlatform(t *testing.T) {
	fs := []types.Feature{team(), guardrails(), publishedStore()}
	if tests.Full() {
		fs = append(fs, pausing(), replicas(), monitoring(), crowd())
	}
	tests.Test(t, fs...)
}
