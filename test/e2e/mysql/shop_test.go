//go:build e2e

package mysql

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Names of the shop and of its objects.
const (
	shopName     = "store"
	shopDatabase = shopName + "-database"
	shopFrontend = shopName + "-frontend-web"
	shopPort     = 8080

	// shopWithin is how soon a shop for development is Ready on a warm cluster, and shopMemory how many bytes its
	// database may have resident then.
	shopWithin = time.Minute
	shopMemory = 400 << 20
)

// published is the shop with MySQL, as it is published.
var published = filepath.Join("..", "..", "..", "examples", "shop", "mysql.yaml")

// shop is an EcommercePlatform with a database of engine mysql.
type shop struct {
	namespace string

	world  *harness.World
	client *harness.Client
}

// claim applies the published claim in the namespace of the tests.
func (s *shop) claim(ctx context.Context) error {
	b, err := os.ReadFile(published)
	if err != nil {
		return fmt.Errorf("cannot read the claim: %w", err)
	}
	u := &unstructured.Unstructured{}
	// The published images are those of the embedded cluster's own registry.
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(b), "10.88.0.1:5000/storeplane", cluster.Registry)), &u.Object); err != nil {
		return fmt.Errorf("cannot parse %s: %w", published, err)
	}
	u.SetNamespace(s.namespace)
	if err := cluster.CreateNamespace(ctx, s.namespace); err != nil {
		return err
	}
	if s.world, err = cluster.Watch(ctx, s.namespace); err != nil {
		return err
	}
	_, err = cluster.Create(ctx, u)
	return err
}

// sells: a shop with MySQL is Ready in time, and what is ordered from it survives the loss of the
// database's pod.
func (s *shop) sells(ctx context.Context, n notes) error {
	full, err := cluster.FillBucket(ctx, "EcommercePlatform")
	if err != nil {
		return err
	}
	defer full.End()
	start := time.Now()
	if err := s.claim(ctx); err != nil {
		return err
	}
	if err := s.world.AwaitReady(ctx, settled, "EcommercePlatform", shopName); err != nil {
		return err
	}
	took := time.Since(start)
	n.Addf("Ready after %.1fs", took.Seconds())
	if took > shopWithin {
		return fmt.Errorf("the shop was Ready after %.1f s, and has %.0f s", took.Seconds(), shopWithin.Seconds())
	}
	if err := errors.Join(s.fits(n), spared(n, full)); err != nil {
		return err
	}
	if s.client, err = harness.StartClient(ctx, cluster, s.world); err != nil {
		return err
	}
	session := rand.Text()
	id, err := s.order(ctx, session)
	if err != nil {
		return err
	}
	old := s.world.Get("Pod", shopDatabase+"-mysql-0")
	if full, err = cluster.FillBucket(ctx, "EcommercePlatform"); err != nil {
		return err
	}
	defer full.End()
	if err := (&database{namespace: s.namespace}).deletePod(ctx, old); err != nil {
		return err
	}
	err = s.world.Await(ctx, settled, "order "+id+" to be served again", func() (bool, string) {
		if u := s.world.Get("Pod", old.GetName()); u == nil || u.GetUID() == old.GetUID() {
			return false, "the pod is not replaced yet"
		}
		a, err := s.ask(ctx, session, "GET", "/api/orders/"+id, "", "")
		if err != nil {
			return false, err.Error()
		}
		return a.Status == 200 && strings.Contains(a.Body, id), fmt.Sprintf("%d %s", a.Status, a.Body)
	})
	return errors.Join(err, spared(n, full), s.world.NeverFalse("Responsive"))
}

// spared checks that no circuit breaker of the shop would have opened with Crossplane's defaults.
func spared(n notes, full *harness.Bucket) error {
	words, err := full.Check(tests.Full())
	n.Addf("%s", words)
	return err
}

// fits: the only server of a database for development needs little memory, as far as that can be read here.
func (s *shop) fits(n notes) error {
	resident, err := harness.Resident(s.world.Get("Pod", shopDatabase+"-mysql-0"), "mysqld")
	if errors.Is(err, harness.ErrNotNode) {
		return nil
	}
	n.Addf("%d MiB resident", resident>>20)
	if err == nil && resident > shopMemory {
		return fmt.Errorf("the database's server has %d MiB resident, and may have %d", resident>>20, shopMemory>>20)
	}
	return err
}

// order places an order and returns its id.
func (s *shop) order(ctx context.Context, session string) (string, error) {
	a, err := s.ask(ctx, session, "POST", "/api/cart", "", `{"productId":"mug"}`)
	if err != nil {
		return "", err
	}
	if a.Status != 200 {
		return "", fmt.Errorf("cannot put a mug into the cart: %d %s", a.Status, a.Body)
	}
	if a, err = s.ask(ctx, session, "POST", "/api/orders", rand.Text(), ""); err != nil {
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

// ask makes one request to the frontend as one customer.
func (s *shop) ask(ctx context.Context, session, method, path, key, body string) (harness.Answer, error) {
	headers := map[string]string{"X-Session": session}
	if key != "" {
		headers["Idempotency-Key"] = key
	}
	if body != "" {
		headers["Content-Type"] = "application/json"
	}
	return s.client.Do(ctx, harness.Request{Host: shopFrontend, Port: shopPort, Method: method, Path: path, Headers: headers, Body: body})
}
