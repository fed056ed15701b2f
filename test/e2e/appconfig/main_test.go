//go:build e2e

// Package appconfig tests AppConfigs: a change of configuration reaches the pods, completely and in
// one rollout, one that does not work is rolled back, and no request fails meanwhile.
package appconfig

import (
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/suite"
)

var (
	tests   = suite.New("e2e-appconfig")
	cluster = tests.Cluster
)

func TestMain(m *testing.M) { tests.Main(m) }

// TestAppConfig: the checks pass in their order. Without -full only the quick ones run.
func TestAppConfig(t *testing.T) {
	fs := []types.Feature{voting()}
	if tests.Full() {
		fs = append(fs, workloads(), claims())
	}
	tests.Test(t, fs...)
}
