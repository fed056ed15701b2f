//go:build e2e

package core

import (
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/types"
)

// dev is the EcommercePlatform of the development environment that most checks use.
var dev = &shop{namespace: "e2e-core", manifest: "shop/store.yaml"}

func developmentShop() types.Feature {
	ns := dev.namespace
	f := features.New("a development shop").
		Assess("a development shop is Ready within 90 s", assess(comesUp, ns)).
		Assess("parts appear in the order of their dependencies, each healthy before the next", assess(inOrder, ns)).
		Assess("while it comes up the claim says for what it waits", assess(saysWaiting, ns)).
		Assess("kubectl get shows claims with their columns", assess(columns, ns)).
		Assess("no circuit breaker of a development shop opens until it is Ready", assess(noBreaker(dev), ns)).
		Assess("a request to reconcile is answered", assess(answersRequests, ns))
	if tests.Full() {
		f = f.Assess("a development shop at rest is applied at most 5 times a minute", assess(rests(dev, developmentApplies), ns))
	}
	f = f.Assess("order over HTTP becomes a row in PostgreSQL", assess(orderIsRow, ns)).
		Assess("all pods are restricted with a read-only root", assess(restricted, ns)).
		Assess("the cache begins no connection", assess(cacheIsClosed, ns)).
		Assess("the cache has TLS, the backend uses it, and its metrics are exported", assess(cacheEncrypts, ns)).
		Assess("no password shows outside of Secrets", assess(noPasswords, ns)).
		Assess("kubectl describe names what a bad backend image holds up, and the shop goes on", assess(badImage, ns)).
		Assess("a new image of backend and frontend rolls without a failed request", assess(rolls, ns)).
		Assess("migration of the new image ran before its first pod", assess(migratedFirst, ns)).
		Assess("edits by hand of a Deployment are put back", assess(deploymentDrift, ns)).
		Assess("a port of a Service that is edited by hand serves again", assess(servicePortDrift, ns)).
		Assess("kubectl wait right after an edit waits for the edit", assess(waitsForEdit, ns)).
		Assess("orders survive deleting every pod with no grace", assess(survives(new(int64(0))), ns))
	if tests.Full() {
		f = f.Assess("orders survive deleting every pod, by the kubelet's leave", assess(survives(nil), ns)).
			Assess("scaling the claim scales the backend to 3 and back", assess(scales, ns)).
			Assess("a change of the configuration rolls to the backend, and opens no circuit breaker", assess(configRolls, ns)).
			Assess("edits by hand of a Service are put back", assess(serviceDrift, ns)).
			Assess("a migration that is edited while it runs ends before the next one begins", assess(neverOverlap, migratesNamespace))
	}
	return f.Feature()
}

// developmentShopEnds comes last: what other features did must not have changed the claim.
func developmentShopEnds() types.Feature {
	ns := dev.namespace
	return features.New("a development shop ends").
		Assess("disabling the cache removes it without a failed request", assess(cacheGoes, ns)).
		Assess("nothing of the shop was ever recreated", assess(neverRecreated, ns)).
		Assess("deleting a development shop leaves nothing", assess(leavesNothing, ns)).
		Feature()
}
