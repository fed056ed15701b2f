//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// readyWithin is the time that users are promised.
const readyWithin = 90 * time.Second

// parts are the components of an EcommercePlatform as in status.components, in their order.
var parts = []string{"database", "cache", "backend", "frontend", "ingress"}

func comesUp(ctx context.Context, n notes) error {
	start := time.Now()
	if err := dev.claim(ctx); err != nil {
		return err
	}
	// A slow start is a failure of this check only: the others continue with the same claim.
	err := dev.world.AwaitReady(ctx, started, "EcommercePlatform", claimName)
	took := time.Since(start)
	for _, part := range parts {
		if at, ok := becameReady(dev.world, part); ok {
			n.Addf("%s %.1fs", part, at.Sub(start).Seconds())
		}
	}
	if err != nil {
		return err
	}
	n.Addf("all %.1fs", took.Seconds())
	if took > readyWithin {
		return fmt.Errorf("the shop took %.1fs to be Ready", took.Seconds())
	}
	return nil
}

// becameReady returns when the claim first reported that a component is ready.
func becameReady(w *harness.World, part string) (time.Time, bool) {
	for _, v := range w.History("EcommercePlatform", claimName) {
		if c, ok := harness.ClaimOf(v.Object).Component(part); ok && c.Ready {
			return v.At, true
		}
	}
	return time.Time{}, false
}

// link is one dependency: next may appear once first is healthy.
type link struct {
	first, next harness.Key
	healthy     func(*unstructured.Unstructured) bool
}

func claimReady(u *unstructured.Unstructured) bool { return harness.ClaimOf(u).Is("Ready") }

func setReady(u *unstructured.Unstructured) bool {
	return harness.Number(u, "status", "readyReplicas") == harness.Number(u, "spec", "replicas") &&
		harness.Number(u, "status", "observedGeneration") == u.GetGeneration()
}

func inOrder(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, soon); err != nil {
		return err
	}
	database := harness.Key{Kind: "DatabaseCluster", Name: databaseClaim}
	cache := harness.Key{Kind: "Deployment", Name: cacheName}
	backend := harness.Key{Kind: "WebApp", Name: backendClaim}
	frontend := harness.Key{Kind: "WebApp", Name: frontendClaim}
	ingress := harness.Key{Kind: "Ingress", Name: ingressName}
	var errs []error
	for _, l := range []link{
		{database, backend, claimReady},
		{cache, backend, setReady},
		{backend, frontend, claimReady},
		{frontend, ingress, claimReady},
	} {
		errs = append(errs, l.check(dev.world))
	}
	for _, k := range []harness.Key{database, cache, backend, frontend, ingress} {
		if h := dev.world.History(k.Kind, k.Name); len(h) > 0 {
			n.Addf("%s at revision %s", k.Name, h[0].Revision())
		}
	}
	return errors.Join(errs...)
}

// check returns an error unless first was healthy in some version older than next. It need not be
// healthy in the newest of them: Crossplane applies the status of a claim with the conditions of
// its cache, which may be older than what it wrote last, so that Ready can be False again for some
// hundredths of a second.
// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/composition_functions.go
func (l link) check(w *harness.World) error {
	next := w.History(l.next.Kind, l.next.Name)
	if len(next) == 0 {
		return fmt.Errorf("%s never appeared", l.next)
	}
	var before []string
	for _, v := range w.History(l.first.Kind, l.first.Name) {
		older, err := resourceversion.CompareResourceVersion(v.Revision(), next[0].Revision())
		if err != nil {
			return fmt.Errorf("cannot compare revisions: %w", err)
		}
		if older >= 0 {
			break
		}
		if l.healthy(v.Object) {
			return nil
		}
		before = append(before, v.Revision())
	}
	if len(before) == 0 {
		return fmt.Errorf("%s appeared before %s", l.next, l.first)
	}
	return fmt.Errorf("%s appeared at revision %s while %s had not been healthy, at %s", l.next, next[0].Revision(), l.first, strings.Join(before, ", "))
}

// saysWaiting checks every status that the claim has had.
func saysWaiting(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, soon); err != nil {
		return err
	}
	named := map[string]string{}
	for _, v := range dev.world.History("EcommercePlatform", claimName) {
		c := harness.ClaimOf(v.Object)
		if c.Ready() {
			break
		}
		if len(c.Status.Components) == 0 {
			continue
		}
		// Of an older generation Ready means nothing: whoever waits compares them. Ready of the newest
		// comes one write before status.observedGeneration if the generation changed a moment before.
		if c.Is("Ready") && c.Condition("Ready").ObservedGeneration >= c.Metadata.Generation && c.Status.Phase != "Running" {
			return fmt.Errorf("Ready is True of generation %d while %s", c.Metadata.Generation, c)
		}
		for _, part := range parts {
			if s, ok := c.Component(part); ok && !s.Ready && s.Message == "" {
				return fmt.Errorf("component %s is not ready and does not say why, while %s", part, c)
			}
			if strings.Contains(c.Status.Message, part+" (") {
				named[part] = c.Status.Message
			}
		}
	}
	var errs []error
	for _, part := range []string{"database", "cache", "backend", "frontend"} {
		if named[part] == "" {
			errs = append(errs, fmt.Errorf("status.message never named %s", part))
		}
	}
	n.Addf("%q", named["database"])
	return errors.Join(errs...)
}
