//go:build e2e

package core

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// claimName is the name of every claim: that several have the same name is part of the test.
const claimName = "store"

// Names of composed objects.
const (
	databaseClaim = claimName + "-database"
	backendClaim  = claimName + "-backend"
	frontendClaim = claimName + "-frontend"
	cacheName     = claimName + "-cache"
	ingressName   = claimName + "-ingress"
	databaseSet   = databaseClaim + "-postgresql"
	backendWeb    = backendClaim + "-web"
	frontendWeb   = frontendClaim + "-web"
	port          = 8080
)

// Timeouts.
const (
	// soon is for what takes one or two reconciles.
	soon = 45 * time.Second
	// settled is for a change of a running EcommercePlatform.
	settled = 3 * time.Minute
	// started is for an EcommercePlatform to start while the machine is busy.
	started = 5 * time.Minute
)

// shop is an EcommercePlatform under test.
type shop struct {
	namespace, manifest string

	world  *harness.World
	client *harness.Client

	// bucket is that of the claim's circuit breaker, from its creation until it is Ready.
	bucket *harness.Bucket
}

// claim creates the namespace, starts a watch of it, and applies the claim.
func (s *shop) claim(ctx context.Context) error {
	if err := cluster.CreateNamespace(ctx, s.namespace); err != nil {
		return err
	}
	var err error
	if s.world, err = cluster.Watch(ctx, s.namespace); err != nil {
		return err
	}
	if s.bucket, err = cluster.FillBucket(ctx, "EcommercePlatform"); err != nil {
		return err
	}
	return s.file(ctx)
}

// file applies the claim in its namespace.
func (s *shop) file(ctx context.Context) error {
	u, err := manifests.Read(s.manifest, map[string]string{"NAMESPACE": s.namespace, "REGISTRY": cluster.Registry})
	if err != nil {
		return err
	}
	_, err = cluster.Create(ctx, u)
	return err
}

// status returns the claim.
func (s *shop) status() harness.Claim { return s.world.Claim("EcommercePlatform", claimName) }

// ready waits until the claim is Ready. The first check that calls it applies the claim, so that
// each check can run alone.
func (s *shop) ready(ctx context.Context, within time.Duration) error {
	if s.world == nil {
		if err := s.claim(ctx); err != nil {
			return err
		}
		within = started
	}
	if err := s.world.AwaitReady(ctx, within, "EcommercePlatform", claimName); err != nil || s.client != nil {
		return err
	}
	// What follows the conditions of Ready is counted, too.
	time.AfterFunc(time.Second, s.bucket.End)
	var err error
	s.client, err = harness.StartClient(ctx, cluster, s.world)
	return err
}

// change patches the spec of the claim.
func (s *shop) change(ctx context.Context, spec harness.Patch) error {
	_, err := cluster.Patch(ctx, "EcommercePlatform", s.namespace, claimName, harness.Patch{"spec": spec})
	return err
}

// touch changes an annotation of the claim, so that it is reconciled.
func (s *shop) touch(ctx context.Context) error {
	_, err := cluster.Patch(ctx, "EcommercePlatform", s.namespace, claimName,
		harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"e2e.storeplane.example.com/touched": rand.Text()}}})
	return err
}

// image returns the image of a tier in a version.
func image(tier, version string) string { return imageOf("shop-" + tier + ":" + version) }

// imageOf returns an image of the cluster's registry.
func imageOf(name string) string { return cluster.Registry + "/" + name }

// pods returns the names of the pods, without those of the tests.
func (s *shop) pods() []string {
	var out []string
	for _, p := range s.world.List("Pod") {
		if !harness.IsClient(p.GetName()) {
			out = append(out, p.GetName())
		}
	}
	return out
}

// customers returns the load of the shop's customers.
func (s *shop) customers(seconds int) harness.Load {
	return harness.Load{
		Host: frontendWeb, Port: port, Session: rand.Text(),
		Workers: 4, Rate: 8,
		Seconds: seconds, Most: 40 * seconds,
	}
}

// ask makes one request to the frontend as one customer.
func (s *shop) ask(ctx context.Context, session, method, path, key, body string) (harness.Answer, error) {
	if s.client == nil {
		return harness.Answer{}, errors.New("the shop was never Ready")
	}
	headers := map[string]string{"X-Session": session}
	if key != "" {
		headers["Idempotency-Key"] = key
	}
	if body != "" {
		headers["Content-Type"] = "application/json"
	}
	return s.client.Do(ctx, harness.Request{Host: frontendWeb, Port: port, Method: method, Path: path, Headers: headers, Body: body})
}

// order orders a mug and returns the ID of the order.
func (s *shop) order(ctx context.Context, session string) (string, error) {
	a, err := s.ask(ctx, session, "POST", "/api/cart", "", `{"productId":"mug"}`)
	if err != nil {
		return "", err
	}
	if a.Status != 200 {
		return "", fmt.Errorf("cannot put a mug into the cart: %d %s", a.Status, a.Body)
	}
	a, err = s.ask(ctx, session, "POST", "/api/orders", rand.Text(), "")
	if err != nil {
		return "", err
	}
	var order struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(a.Body), &order); err != nil || a.Status != 201 || order.ID == "" {
		return "", fmt.Errorf("cannot place the order: %d %s", a.Status, a.Body)
	}
	return order.ID, nil
}

// serves checks that the shop shows an order to the customer who placed it.
func (s *shop) serves(ctx context.Context, session, id string) error {
	a, err := s.ask(ctx, session, "GET", "/api/orders/"+id, "", "")
	if err != nil {
		return err
	}
	if a.Status != 200 || !strings.Contains(a.Body, id) {
		return fmt.Errorf("order %s is not served: %d %s", id, a.Status, a.Body)
	}
	return nil
}

// sql runs a query on the primary.
func (s *shop) sql(ctx context.Context, query string) (string, error) {
	primary := harness.Field(s.world.Get("DatabaseCluster", databaseClaim), "status", "primary")
	if primary == "" {
		return "", errors.New("the DatabaseCluster names no primary")
	}
	out, err := cluster.Exec(ctx, s.namespace, primary, "postgresql", nil,
		"psql", "--no-psqlrc", "--tuples-only", "--no-align", "--username=postgres", "--dbname=app", "--command="+query)
	return strings.TrimSpace(out), err
}

// rows returns how many of the orders are rows in PostgreSQL.
func (s *shop) rows(ctx context.Context, ids ...string) (int, error) {
	out, err := s.sql(ctx, "SELECT count(*) FROM orders WHERE id IN ('"+strings.Join(ids, "','")+"')")
	if err != nil {
		return 0, err
	}
	n := 0
	if _, err := fmt.Sscan(out, &n); err != nil {
		return 0, fmt.Errorf("cannot count orders from %q: %w", out, err)
	}
	return n, nil
}
