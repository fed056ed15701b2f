//go:build e2e

// Package appconfig tests AppConfigs: that a change of configuration reaches the
// pods, all of it and once, that one that does not work is taken back, and that
// nobody who asks for something meanwhile goes without an answer.
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

// TestAppConfig lists the checks in their order. Without -full only those are
// made that are quick.
func TestAppConfig(t *testing.T) {
	fs := []types.Feature{voting()}
	if tests.Full() {
		fs = append(fs, workloads(), claims())
	}
	tests.Test(t, fs...)
}
