//go:build e2e

package upgrade

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/types"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

const namespace = "e2e-upgrade"

// Timeouts and targets.
const (
	started = 6 * time.Minute
	// settled is how long the state must not change once everything is as expected.
	settled = 15 * time.Second
	// handedOver is the longest time without an acknowledged write while the primary is replaced.
	handedOver = 5 * time.Second
	// fewest is the smallest number of requests that makes a load meaningful.
	fewest = 200
)

// ground is what the previous release runs: a DatabaseCluster of three servers without a window,
// whose servers an upgrade replaces, an EcommercePlatform and examples whose window is closed.
type ground struct {
	world  *harness.World
	ledger *harness.Ledger
	client *harness.Client

	// image is the image of the servers of the previous release.
	image string
}

func upgrades() types.Feature {
	g := &ground{}
	return tests.Feature("upgrade", namespace, canaryNamespace).
		Full("the release before runs a database and a shop", g.begins).
		Full("an upgrade loses no row and no request, and restarts nothing out of a window", g.upgrades).
		Full("the release before is installed again, and restarts nothing that never ran this one", g.goesBack).
		Full("a broken release reaches its first wave alone, and goes back", g.contains).
		Full("the shop is upgraded once it is asked for", g.upgradesShop).
		Full("the other examples are upgraded too, and follow an edit", g.editsExamples).
		Feature()
}

// begins installs the previous release and creates the claims.
func (g *ground) begins(ctx context.Context, n notes) error {
	began := time.Now()
	if err := errors.Join(buildBefore(), installBefore()); err != nil {
		return err
	}
	n.Addf("built and installed in %.0f s", time.Since(began).Seconds())
	if err := cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	var err error
	if g.world, err = cluster.Watch(ctx, namespace); err != nil {
		return err
	}
	start := time.Now().UTC().Add(12 * time.Hour).Format("15:04")
	values := map[string]string{"NAMESPACE": namespace, "REGISTRY": cluster.Registry, "START": start}
	for _, file := range []string{"upgrade/orders.yaml", "upgrade/store.yaml"} {
		u, err := manifests.Read(file, values)
		if err != nil {
			return err
		}
		if _, err := cluster.Create(ctx, u); err != nil {
			return err
		}
	}
	if err := g.applyExamples(ctx, start); err != nil {
		return err
	}
	if err := errors.Join(g.world.AwaitReady(ctx, started, "DatabaseCluster", "orders"), g.world.AwaitReady(ctx, started, "EcommercePlatform", "store")); err != nil {
		return err
	}
	if g.ledger, err = harness.StartLedger(ctx, cluster, g.world, harness.Database{Secret: "orders-connection", Host: "orders-postgresql-%d.orders-postgresql." + namespace + ".svc", Servers: 3}); err != nil {
		return err
	}
	if g.client, err = harness.StartClient(ctx, cluster, g.world); err != nil {
		return err
	}
	images := g.images("orders")
	if len(images) != 1 {
		return fmt.Errorf("the servers run %v, want one image", images)
	}
	g.image = images[0]
	return nil
}

// claims returns all claims of the namespace, ordered by kind.
func (g *ground) claims() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, kind := range []string{"EcommercePlatform", "DatabaseCluster", "WebApp"} {
		out = append(out, g.world.List(kind)...)
	}
	return out
}

// compose changes an annotation of all claims, so that the installed release composes them now and
// not at each one's next poll.
func (g *ground) compose(ctx context.Context) error {
	var errs []error
	for _, u := range g.claims() {
		_, err := cluster.Patch(ctx, u.GetKind(), u.GetNamespace(), u.GetName(), harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"e2e.storeplane.example.com/touched": rand.Text()}}})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// pods returns the pods of a claim by name, with their UIDs and the number of restarts of their
// containers.
func (g *ground) pods(claim string) map[string]string {
	out := map[string]string{}
	for _, p := range g.world.List("Pod") {
		if !strings.HasPrefix(p.GetName(), claim+"-") || harness.Field(p, "status", "phase") == "Succeeded" {
			continue
		}
		text := &strings.Builder{}
		text.WriteString(string(p.GetUID()))
		statuses, _ := harness.List(p, "status", "containerStatuses")
		for _, s := range statuses {
			fmt.Fprintf(text, " %v:%v", s["name"], s["restartCount"])
		}
		out[p.GetName()] = text.String()
	}
	return out
}

// images returns the distinct images that the servers of a database run.
func (g *ground) images(claim string) []string {
	var out []string
	for _, p := range g.world.List("Pod") {
		if !strings.HasPrefix(p.GetName(), claim+"-postgresql-") {
			continue
		}
		for _, c := range harness.Containers(p) {
			if image, _ := c["image"].(string); c["name"] == "postgresql" && !slices.Contains(out, image) {
				out = append(out, image)
			}
		}
	}
	return out
}

// runs reports whether all servers of a database serve, and its claim is Ready and Running.
func (g *ground) runs(claim string, is func(image string) bool) (bool, string) {
	if ok, instead := g.serves(claim, is); !ok {
		return false, instead
	}
	c := g.world.Claim("DatabaseCluster", claim)
	return c.Ready() && c.Status.Phase == "Running", c.String()
}

// serves reports whether all servers of a database run the same image, one that is as expected, and are
// ready.
func (g *ground) serves(claim string, is func(image string) bool) (bool, string) {
	for _, p := range g.world.List("Pod") {
		if strings.HasPrefix(p.GetName(), claim+"-postgresql-") && (p.GetDeletionTimestamp() != nil || !harness.ClaimOf(p).Is("Ready")) {
			// The claim may not have seen it yet.
			return false, "pod " + p.GetName() + " is not ready"
		}
	}
	if got := g.images(claim); len(got) != 1 || !is(got[0]) {
		return false, "its servers run " + strings.Join(got, ", ")
	}
	return true, ""
}

func (g *ground) isBefore(image string) bool { return image == g.image }

func (g *ground) isThis(image string) bool { return image != g.image }

// change installs a release under load, has it compose all claims, and waits until the servers of
// the database run its images. Then rests has to hold for a while.
func (g *ground) change(ctx context.Context, n notes, install func() error, is func(image string) bool, rests func(claim string, is func(image string) bool) (bool, string)) error {
	from, err := g.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	waiting := g.waiting()
	const seconds = 900
	load, err := g.client.Start(ctx, harness.Load{Host: "store-frontend-web", Port: 8080, Session: rand.Text(), Workers: 2, Rate: 5, Seconds: seconds, Most: 20 * seconds})
	if err != nil {
		return err
	}
	err = errors.Join(install(), g.compose(ctx))
	if err == nil {
		err = g.world.Await(ctx, started, "the servers of orders to run the release's image", func() (bool, string) { return g.runs("orders", is) })
	}
	if err == nil {
		err = g.world.Hold(ctx, settled, "the claims rest", func() (bool, string) { return rests("orders", is) })
	}
	tally, lerr := load.Stop()
	a, aerr := g.ledger.Account(ctx, from)
	n.Addf("%s; gap %.2fs of %s; shop: %s", a, a.Gap.Seconds(), handedOver, tally)
	if a.Gap > handedOver {
		err = errors.Join(err, fmt.Errorf("for %.2fs no write was acknowledged, %s is the target", a.Gap.Seconds(), handedOver))
	}
	if now := g.waiting(); !maps.Equal(waiting, now) {
		err = errors.Join(err, fmt.Errorf("the pods of claims whose window is closed were %v, are %v", waiting, now))
	}
	return errors.Join(err, lerr, aerr, tally.Check(fewest))
}

// upgrades upgrades to this release.
func (g *ground) upgrades(ctx context.Context, n notes) error {
	if err := g.change(ctx, n, func() error { return installThis(false) }, g.isThis, g.runs); err != nil {
		return err
	}
	return g.world.Await(ctx, started, "the shop's database to wait for its window", func() (bool, string) {
		is := g.upgraded("DatabaseCluster", "store-database")
		return is["status"] == "False" && is["reason"] == "AwaitingMaintenance", fmt.Sprint(is)
	})
}

// upgraded returns the condition Upgraded of a claim, or nil.
func (g *ground) upgraded(kind, name string) map[string]any {
	list, _ := harness.List(g.world.Get(kind, name), "status", "conditions")
	for _, c := range list {
		if c["type"] == appsv1.TypeUpgraded {
			return c
		}
	}
	return nil
}

// goesBack installs the previous release again, and then this one. How steadily its claims are Ready is the
// previous release's matter.
func (g *ground) goesBack(ctx context.Context, n notes) error {
	if err := g.change(ctx, n, installBefore, g.isBefore, g.serves); err != nil {
		return err
	}
	return g.change(ctx, n, func() error { return installThis(false) }, g.isThis, g.runs)
}

// upgradesShop upgrades the EcommercePlatform outside of its window, on request.
func (g *ground) upgradesShop(ctx context.Context, n notes) error {
	began := time.Now()
	for _, u := range g.claims() {
		release := harness.Field(u, "status", "pendingRelease")
		if release == "" {
			continue
		}
		_, err := cluster.Patch(ctx, u.GetKind(), namespace, u.GetName(), harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{compose.UpgradeAnnotation: release}}})
		if err != nil {
			return err
		}
	}
	err := g.world.Await(ctx, started, "the shop's database to run this release's image", func() (bool, string) { return g.runs("store-database", g.isThis) })
	if err != nil {
		return err
	}
	n.Addf("upgraded %.0f s after it was asked for", time.Since(began).Seconds())
	return g.world.AwaitReady(ctx, started, "EcommercePlatform", "store")
}
