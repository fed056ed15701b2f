//go:build e2e

package platform

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// shop is an EcommercePlatform under test.
type shop struct {
	namespace, name string

	// file applies the claim.
	file func(ctx context.Context, s *shop) error
	// host is the name by which customers reach the shop through the ingress controller, or "" if
	// they use the Service of its frontend.
	host string

	world  *harness.World
	client *harness.Client
	ca     string
}

// filed returns a function that creates the claim of a manifest with the rights of the cluster's
// administrator.
func filed(manifest string) func(context.Context, *shop) error {
	return func(ctx context.Context, s *shop) error {
		u, err := manifests.Read(manifest, map[string]string{"NAMESPACE": s.namespace, "NAME": s.name, "REGISTRY": cluster.Registry})
		if err != nil {
			return err
		}
		_, err = cluster.Create(ctx, u)
		return err
	}
}

// ready waits until the shop is Ready. The first check that calls it applies the claim, so that
// each check can run alone.
func (s *shop) ready(ctx context.Context) error {
	if s.world == nil {
		if err := namespace(ctx, s.namespace); err != nil {
			return err
		}
		var err error
		if s.world, err = cluster.Watch(ctx, s.namespace); err != nil {
			return err
		}
		if err := s.file(ctx, s); err != nil {
			s.world.Stop()
			s.world = nil
			return err
		}
	}
	if err := s.world.AwaitReady(ctx, started, "EcommercePlatform", s.name); err != nil || s.client != nil {
		return err
	}
	var err error
	s.client, err = harness.StartClient(ctx, cluster, s.world)
	return err
}

// status returns the claim.
func (s *shop) status() harness.Claim { return s.world.Claim("EcommercePlatform", s.name) }

// change patches the claim and waits until the watch contains the change.
func (s *shop) change(ctx context.Context, p harness.Patch) error {
	u, err := cluster.Patch(ctx, "EcommercePlatform", s.namespace, s.name, p)
	if err != nil {
		return err
	}
	return s.world.AwaitSeen(ctx, u)
}

// part returns the name of a part of the shop.
func (s *shop) part(name string) string { return s.name + "-" + name }

// where returns where customers reach the shop.
func (s *shop) where() (host string, port int, tls *harness.TLS) {
	if s.host == "" {
		return s.part("frontend-web"), 8080, nil
	}
	return ingressHost, 443, &harness.TLS{CA: s.ca, Name: s.host}
}

// customers returns a load of 50 requests a second.
func (s *shop) customers(seconds int) harness.Load {
	l := harness.Load{Session: rand.Text(), Workers: 10, Rate: 5, Seconds: seconds, Most: 60 * seconds}
	l.Host, l.Port, l.TLS = s.where()
	return l
}

// under calls do under a load of customers, of which no request may fail and no acknowledged order
// may be missing.
func (s *shop) under(ctx context.Context, n notes, do func() error) error {
	load, err := s.client.Start(ctx, s.customers(900))
	if err != nil {
		return err
	}
	err = do()
	tally, lerr := load.Stop()
	if err := errors.Join(err, lerr); err != nil {
		return err
	}
	n.Addf("%s, %.0f a second", tally, float64(tally.Requests)/tally.Seconds)
	const least = 300
	if err := tally.Check(least); err != nil {
		return err
	}
	return s.rows(ctx, n, tally.Orders)
}

// rows checks that acknowledged orders are in the database.
func (s *shop) rows(ctx context.Context, n notes, orders []string) error {
	if len(orders) == 0 {
		return errors.New("the load placed no order")
	}
	primary := harness.Field(s.world.Get("DatabaseCluster", s.part("database")), "status", "primary")
	if primary == "" {
		return errors.New("the DatabaseCluster names no primary")
	}
	out, err := cluster.Exec(ctx, s.namespace, primary, "postgresql", strings.NewReader("SELECT count(*) FROM orders WHERE id IN ('"+strings.Join(orders, "','")+"')"),
		"psql", "--no-psqlrc", "--tuples-only", "--no-align", "--username=postgres", "--dbname=app")
	if err != nil {
		return err
	}
	if have := strings.TrimSpace(out); have != strconv.Itoa(len(orders)) {
		return fmt.Errorf("of %d acknowledged orders %s are rows in PostgreSQL", len(orders), have)
	}
	n.Addf("%d orders, all rows", len(orders))
	return nil
}

// ask makes one request of one customer.
func (s *shop) ask(ctx context.Context, session, method, path, body string) (harness.Answer, error) {
	r := harness.Request{Method: method, Path: path, Headers: map[string]string{"X-Session": session}, Body: body}
	if body != "" {
		r.Headers["Content-Type"] = "application/json"
	}
	r.Host, r.Port, r.TLS = s.where()
	return s.client.Do(ctx, r)
}

// order orders a mug, checks that the order is served, and returns its ID.
func (s *shop) order(ctx context.Context) (string, error) {
	session := rand.Text()
	a, err := s.ask(ctx, session, "POST", "/api/cart", `{"productId":"mug"}`)
	if err != nil {
		return "", err
	}
	if a.Status != 200 {
		return "", fmt.Errorf("cannot put a mug into the cart: %d %s", a.Status, a.Body)
	}
	if a, err = s.ask(ctx, session, "POST", "/api/orders", ""); err != nil {
		return "", err
	}
	var order struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(a.Body), &order); err != nil || a.Status != 201 || order.ID == "" {
		return "", fmt.Errorf("cannot place the order: %d %s", a.Status, a.Body)
	}
	if a, err = s.ask(ctx, session, "GET", "/api/orders/"+order.ID, ""); err != nil {
		return "", err
	}
	if a.Status != 200 || !strings.Contains(a.Body, order.ID) {
		return "", fmt.Errorf("order %s is not served: %d %s", order.ID, a.Status, a.Body)
	}
	return order.ID, nil
}

// awaitServed waits until the shop answers where customers reach it.
func (s *shop) awaitServed(ctx context.Context) error {
	instead := ""
	err := wait.For(func(ctx context.Context) (bool, error) {
		a, err := s.ask(ctx, rand.Text(), "GET", "/api/products", "")
		instead = fmt.Sprintf("%d %.200s %v", a.Status, a.Body, err)
		return err == nil && a.Status == 200, nil
	}, wait.WithContext(ctx), wait.WithTimeout(time.Minute), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		host, port, _ := s.where()
		return fmt.Errorf("cannot wait for the shop to answer at %s:%d: %w: %s", host, port, err, instead)
	}
	return nil
}

// pods returns the pods of the claim that serve, without those of Jobs, which end by themselves.
func (s *shop) pods() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, p := range s.world.List("Pod") {
		if p.GetLabels()["platform"] == s.name && p.GetDeletionTimestamp() == nil && p.GetLabels()["batch.kubernetes.io/job-name"] == "" {
			out = append(out, p)
		}
	}
	return out
}

// rolledOut reports whether all pods of a Deployment are of its newest version and run an image.
func (s *shop) rolledOut(name, image string) (bool, string) {
	u := s.world.Get("Deployment", name)
	want := harness.Number(u, "spec", "replicas")
	status := func(field string) int64 { return harness.Number(u, "status", field) }
	switch {
	case harness.Image(u) != image:
		return false, name + " is to run " + harness.Image(u)
	case status("observedGeneration") != u.GetGeneration() || status("updatedReplicas") != want || status("availableReplicas") != want || status("replicas") != want:
		return false, fmt.Sprintf("%s has %d new pods, %d available, %d in all, of %d", name, status("updatedReplicas"), status("availableReplicas"), status("replicas"), want)
	}
	return true, ""
}
