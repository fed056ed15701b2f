//go:build e2e

package core

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// workloads are the workloads of an EcommercePlatform, with their kinds.
var workloads = map[string]string{
	databaseSet: "StatefulSet",
	cacheName:   "Deployment", backendWeb: "Deployment", frontendWeb: "Deployment",
}

// up reports whether every workload has as many ready pods as it requests, without the given old
// ones, and what is missing. It counts pods, because the status of a workload lags behind them.
func up(s *shop, old ...string) (ok bool, missing string) {
	for name, kind := range workloads {
		u := s.world.Get(kind, name)
		if u == nil {
			continue
		}
		ready := int64(0)
		for _, p := range s.world.List("Pod") {
			if strings.HasPrefix(p.GetName(), name+"-") && podReady(p, old) {
				ready++
			}
		}
		if want := harness.Number(u, "spec", "replicas"); ready != want {
			return false, fmt.Sprintf("%s has %d of %d pods", name, ready, want)
		}
	}
	return true, ""
}

func podReady(p *unstructured.Unstructured, old []string) bool {
	for _, uid := range old {
		if uid == string(p.GetUID()) {
			return false
		}
	}
	return p.GetDeletionTimestamp() == nil && harness.ClaimOf(p).Is("Ready")
}

// rolledOut reports whether all pods of a Deployment are of its newest version and available.
func rolledOut(s *shop, name string) bool {
	u := s.world.Get("Deployment", name)
	want := harness.Number(u, "spec", "replicas")
	status := func(field string) int64 { return harness.Number(u, "status", field) }
	return u != nil && status("observedGeneration") == u.GetGeneration() &&
		status("updatedReplicas") == want && status("availableReplicas") == want && status("replicas") == want
}
