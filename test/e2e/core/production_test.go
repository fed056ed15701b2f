//go:build e2e

package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

var production = &shop{namespace: "e2e-core-production", manifest: "production/store.yaml"}

func productionShop() types.Feature {
	ns := production.namespace
	f := features.New("a production shop").
		Assess("a production shop with two database servers becomes Ready", assess(productionComesUp, ns))
	f = f.Assess("no circuit breaker of a production shop opens until it is Ready", assess(noBreaker(production), ns))
	if tests.Full() {
		f = f.Assess("a production shop at rest is applied at most 8 times a minute, beside a development shop with its 5", assess(rests(production, productionApplies+developmentApplies), ns))
	}
	return f.Assess("production pods are restricted, doubled and guarded by disruption budgets", assess(productionIsSafe, ns)).
		Assess("deleting a production shop leaves its volumes and nothing else", assess(productionLeavesVolumes, ns)).
		Assess("claiming a deleted production shop again finds its orders", assess(productionComesBack, ns)).
		Feature()
}

func productionComesUp(ctx context.Context, n notes) error {
	start := time.Now()
	if err := production.ready(ctx, started); err != nil {
		return err
	}
	for _, part := range parts {
		if at, ok := becameReady(production.world, part); ok {
			n.Addf("%s %.1fs", part, at.Sub(start).Seconds())
		}
	}
	n.Addf("all %.1fs", time.Since(start).Seconds())
	return placeProductionOrder(ctx)
}

// productionCustomer is the session of a customer who returns after the claim was deleted and
// applied again.
const productionCustomer = "a-production-customer"

// productionOrder is the order that was placed before.
var productionOrder string

func placeProductionOrder(ctx context.Context) error {
	var err error
	if productionOrder, err = production.order(ctx, productionCustomer); err != nil {
		return err
	}
	return production.serves(ctx, productionCustomer, productionOrder)
}

func productionIsSafe(ctx context.Context, n notes) error {
	if err := production.ready(ctx, soon); err != nil {
		return err
	}
	if err := cluster.AuditRestricted(ctx, production.namespace); err != nil {
		return err
	}
	for _, name := range []string{backendWeb, frontendWeb} {
		if up := harness.Number(production.world.Get("Deployment", name), "status", "availableReplicas"); up != 2 {
			return fmt.Errorf("Deployment %s has %d pods, not 2", name, up)
		}
	}
	for _, name := range []string{backendWeb, frontendWeb, databaseSet} {
		if production.world.Get("PodDisruptionBudget", name) == nil {
			return fmt.Errorf("there is no PodDisruptionBudget %s", name)
		}
	}
	state, err := production.sql(ctx, "SELECT string_agg(state || ' ' || sync_state, ', ') FROM pg_stat_replication")
	if err != nil {
		return err
	}
	if state != "streaming sync" && state != "streaming quorum" {
		return fmt.Errorf("replication is %q, not synchronous", state)
	}
	n.Addf("replication is %s", state)
	return nil
}

// productionStays are the objects that stay after the deletion of a claim in production.
var productionStays = []string{
	"PersistentVolumeClaim data-" + databaseSet + "-0",
	"PersistentVolumeClaim data-" + databaseSet + "-1",
	"PersistentVolumeClaim data-" + databaseClaim + "-repository-0",
}

func productionLeavesVolumes(ctx context.Context, n notes) error {
	if err := production.ready(ctx, settled); err != nil {
		return err
	}
	for kind, name := range map[string]string{"EcommercePlatform": claimName, "DatabaseCluster": databaseClaim} {
		if err := cluster.Delete(ctx, kind, production.namespace, name); err == nil || !strings.Contains(err.Error(), "deletionProtection") {
			return fmt.Errorf("want the deletion of %s %s to be refused, naming deletionProtection, got: %w", kind, name, err)
		}
	}
	if err := unprotect(ctx); err != nil {
		return err
	}
	took, err := end(ctx, production, productionStays...)
	n.Addf("gone after %.1fs", took.Seconds())
	return err
}

// unprotect turns deletion protection off for the claim and its database.
func unprotect(ctx context.Context) error {
	if err := production.change(ctx, harness.Patch{"deletionProtection": false}); err != nil {
		return err
	}
	return production.world.Await(ctx, settled, "nothing to be protected", func() (bool, string) {
		left := production.world.List("Usage")
		return len(left) == 0, fmt.Sprintf("%d Usages are left", len(left))
	})
}

// productionComesBack applies the claim again, which uses the retained volumes.
func productionComesBack(ctx context.Context, n notes) error {
	// The check before has deleted the claim, unless this one runs alone.
	if production.world == nil || production.status().Metadata.Name != "" {
		if err := production.ready(ctx, started); err != nil {
			return err
		}
		if err := placeProductionOrder(ctx); err != nil {
			return err
		}
		if err := unprotect(ctx); err != nil {
			return err
		}
		if _, err := end(ctx, production, productionStays...); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := production.file(ctx); err != nil {
		return err
	}
	if err := production.ready(ctx, started); err != nil {
		return err
	}
	n.Addf("Ready after %.1fs", time.Since(start).Seconds())
	return production.serves(ctx, productionCustomer, productionOrder)
}
