//go:build e2e

// Package platform tests what a company's people see of the platform: a team with
// no rights beyond its namespace files the claim that was published, opens it to
// customers, is told what it may not ask for, and whoever runs the platform sees
// all of it and may lose a pod of it.
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

// TestPlatform lists the checks in their order. Without -full only those are made
// that are quick.
func TestPlatform(t *testing.T) {
	fs := []types.Feature{team(), guardrails(), publishedStore()}
	if tests.Full() {
		fs = append(fs, pausing(), replicas(), monitoring(), crowd())
	}
	tests.Test(t, fs...)
}
