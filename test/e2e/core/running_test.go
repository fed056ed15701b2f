//go:build e2e

package core

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// workloads of a shop by their names.
var workloads = map[string]string{
	databaseSet: "StatefulSet",
	cacheName:   "Deployment", backendWeb: "Deployment", frontendWeb: "Deployment",
}

// up tells whether every workload of a shop has as many ready pods as it asks
// for, none of the given old ones among them, and what is missing. It counts
// pods: the status of a workload lags behind them.
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

// rolledOut tells whether all pods of a Deployment are its newest, and none of
// the old ones is left.
func rolledOut(s *shop, name string) bool {
	u := s.world.Get("Deployment", name)
	want := harness.Number(u, "spec", "replicas")
	status := func(field string) int64 { return harness.Number(u, "status", field) }
	return u != nil && status("observedGeneration") == u.GetGeneration() &&
		status("updatedReplicas") == want && status("availableReplicas") == want && status("replicas") == want
}
