//go:build e2e

package appconfig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Names of the claims with a config and of their Deployments.
const (
	web    = "web"
	webWeb = "web-web"

	store       = "store"
	backendWeb  = "store-backend-web"
	frontendWeb = "store-frontend-web"
)

// claims returns the checks of claims that have a config.
func claims() types.Feature {
	g := newGround("e2e-appconfig-claims")
	f := tests.Feature("claims with a config", g.namespace).
		Full("a WebApp's config reaches its pods with its image under load", g.webChanges).
		Full("a WebApp's config that does not work is taken back under load", g.webTakesBack).
		Full("a shop's config reaches the backend and then the frontend under load", g.shopChanges).
		Full("a shop's config that does not work is taken back under load", g.shopTakesBack)
	return f.Feature()
}

// claim creates a claim with a config, unless an earlier check has, and waits until it is Ready.
func (g *ground) claim(ctx context.Context, kind, name, file string) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	err := g.once.Do(name, func() error { return g.create(ctx, file, nil) })
	if err != nil {
		return err
	}
	return g.world.AwaitReady(ctx, started, kind, name)
}

// configOf returns the config part of a claim's status.
func (g *ground) configOf(kind, name string) (bundle, state, message string) {
	u := g.world.Get(kind, name)
	return harness.Field(u, "status", "config", "bundle"), harness.Field(u, "status", "config", "state"), harness.Field(u, "status", "config", "message")
}

// spec patches the spec of a claim.
func (g *ground) spec(ctx context.Context, kind, name string, p harness.Patch) error {
	return g.change(ctx, kind, name, harness.Patch{"spec": p})
}

func (g *ground) webChanges(ctx context.Context, n notes) error {
	if err := g.claim(ctx, "WebApp", web, "webapp.yaml"); err != nil {
		return err
	}
	before, err := g.replicaSets(ctx, webWeb)
	if err != nil {
		return err
	}
	err = g.under(ctx, n, webWeb, nil, func() error {
		begin := time.Now()
		err := g.spec(ctx, "WebApp", web, harness.Patch{"image": cluster.Registry + "/vote:v2", "config": harness.Patch{"POLL": "p2"}})
		if err != nil {
			return err
		}
		if err := g.world.AwaitReady(ctx, rolled, "WebApp", web); err != nil {
			return err
		}
		n.Addf("Ready after %.1fs", time.Since(begin).Seconds())
		return nil
	})
	if err != nil {
		return err
	}
	bundle, state, _ := g.configOf("WebApp", web)
	if state != "Running" {
		return fmt.Errorf("the claim is Ready and its config %s", state)
	}
	if err := g.awaitRuns(ctx, soon, "Deployment", webWeb, web, bundle); err != nil {
		return err
	}
	if err := g.answers(ctx, webWeb, "p2"); err != nil {
		return err
	}
	now, err := g.replicaSets(ctx, webWeb)
	if err != nil {
		return err
	}
	if made := newOf(before, now); len(made) != 1 {
		return fmt.Errorf("one edit of image and config took %d ReplicaSets: %v", len(made), made)
	}
	return nil
}

// takesBackClaim changes a claim such that its pods crash, and waits until its config is rolled
// back and the status contains the reason.
func (g *ground) takesBackClaim(ctx context.Context, n notes, kind, name string, bad harness.Patch, says string) error {
	begin := time.Now()
	good, _, _ := g.configOf(kind, name)
	if err := g.spec(ctx, kind, name, harness.Patch{"config": bad}); err != nil {
		return err
	}
	// Crossplane writes conditions a moment after the rest of a status.
	err := g.world.Await(ctx, rolled, fmt.Sprintf("%s %s to say that its config was taken back, and of %s", kind, name, says), func() (bool, string) {
		c := g.world.Claim(kind, name)
		bundle, state, message := g.configOf(kind, name)
		cond := c.Condition("ConfigReady")
		reported := state == "RolledBack" && cond.Status == "False" && cond.Reason == "RolledBack" && strings.Contains(message, says) && strings.Contains(c.Status.Message, says)
		return reported && bundle == good && !c.Ready(), fmt.Sprintf("its config is %s with %s (%s), and %s", state, bundle, message, c)
	})
	if err != nil {
		return err
	}
	n.Addf("said after %.1fs", time.Since(begin).Seconds())
	return nil
}

func (g *ground) webTakesBack(ctx context.Context, n notes) error {
	if err := g.claim(ctx, "WebApp", web, "webapp.yaml"); err != nil {
		return err
	}
	good, _, _ := g.configOf("WebApp", web)
	pods, after := uids(g.podsOf(webWeb)), len(g.world.History("Deployment", webWeb))
	err := g.under(ctx, n, webWeb, nil, func() error {
		if err := g.takesBackClaim(ctx, n, "WebApp", web, harness.Patch{"CLOSES": "soon"}, webWeb); err != nil {
			return err
		}
		return g.awaitRuns(ctx, soon, "Deployment", webWeb, web, good)
	})
	if err != nil {
		return err
	}
	if now := uids(g.podsOf(webWeb)); !slices.Equal(pods, now) {
		return fmt.Errorf("the pods were %v, are %v", pods, now)
	}
	if least := g.leastAvailable(webWeb, after); least < int64(len(pods)) {
		return fmt.Errorf("only %d of %d pods took requests for a while", least, len(pods))
	}
	if err := g.spec(ctx, "WebApp", web, harness.Patch{"config": harness.Patch{"CLOSES": nil}}); err != nil {
		return err
	}
	return g.world.AwaitReady(ctx, soon, "WebApp", web)
}

// customers calls change under a load of customers, of which no request may fail.
func (g *ground) customers(ctx context.Context, n notes, change func() error) error {
	const seconds, workers, rate = 600, 4, 8
	load, err := g.client.Start(ctx, harness.Load{
		Host: frontendWeb, Port: port, Session: rand.Text(),
		Workers: workers, Rate: rate, Seconds: seconds, Most: seconds * workers * rate,
	})
	if err != nil {
		return err
	}
	err = change()
	t, lerr := load.Stop()
	n.Addf("%s", t)
	if err := errors.Join(err, lerr); err != nil {
		return err
	}
	return t.Check(leastRequests)
}

func (g *ground) shopChanges(ctx context.Context, n notes) error {
	if err := g.claim(ctx, "EcommercePlatform", store, "store.yaml"); err != nil {
		return err
	}
	err := g.customers(ctx, n, func() error {
		begin := time.Now()
		if err := g.spec(ctx, "EcommercePlatform", store, harness.Patch{"config": harness.Patch{"SHUTDOWN_DELAY": "4s"}}); err != nil {
			return err
		}
		if err := g.world.AwaitReady(ctx, 2*rolled, "EcommercePlatform", store); err != nil {
			return err
		}
		n.Addf("Ready after %.1fs", time.Since(begin).Seconds())
		return nil
	})
	if err != nil {
		return err
	}
	bundle, state, _ := g.configOf("EcommercePlatform", store)
	if state != "Running" {
		return fmt.Errorf("the claim is Ready and its config %s", state)
	}
	for _, tier := range []string{backendWeb, frontendWeb} {
		if err := g.awaitRuns(ctx, soon, "Deployment", tier, store, bundle); err != nil {
			return err
		}
	}
	return nil
}

// shopTakesBack checks that a value that stops the backend is rolled back and never reaches the
// frontend.
func (g *ground) shopTakesBack(ctx context.Context, n notes) error {
	if err := g.claim(ctx, "EcommercePlatform", store, "store.yaml"); err != nil {
		return err
	}
	good, _, _ := g.configOf("EcommercePlatform", store)
	frontend := uids(g.podsOf(frontendWeb))
	backend := uids(g.podsOf(backendWeb))
	err := g.customers(ctx, n, func() error {
		if err := g.takesBackClaim(ctx, n, "EcommercePlatform", store, harness.Patch{"SHUTDOWN_DELAY": "nonsense"}, backendWeb); err != nil {
			return err
		}
		return g.awaitRuns(ctx, soon, "Deployment", backendWeb, store, good)
	})
	if err != nil {
		return err
	}
	if now := uids(g.podsOf(frontendWeb)); !slices.Equal(frontend, now) {
		return fmt.Errorf("the frontend's pods were %v, are %v", frontend, now)
	}
	if now := uids(g.podsOf(backendWeb)); !slices.Equal(backend, now) {
		return fmt.Errorf("the backend's pods were %v, are %v", backend, now)
	}
	if err := g.spec(ctx, "EcommercePlatform", store, harness.Patch{"config": harness.Patch{"SHUTDOWN_DELAY": "4s"}}); err != nil {
		return err
	}
	return g.world.AwaitReady(ctx, rolled, "EcommercePlatform", store)
}
