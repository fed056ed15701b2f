//go:build e2e

package platform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	// companyRegistry is the registry in the published claim. Nodes have to be able to pull from
	// it: those of the embedded cluster find its images in the cluster's own registry.
	companyRegistry = "registry.company.com"

	storeNamespace = "ecommerce-prod"
	storeName      = "production-store"
	storeHost      = "shop.example.com"
)

// published is the claim as it was published, except for the version of the database.
var published = filepath.Join("..", "..", "..", "examples", "seeds", "production-store.yaml")

// store is the EcommercePlatform of the published claim.
var store = &shop{namespace: storeNamespace, name: storeName, file: fileStore}

func publishedStore() types.Feature {
	return tests.Feature("the published store", storeNamespace, ingressNamespace).
		Quick("the published production-store, applied by a team of its namespace, becomes Ready", storeComesUp).
		Quick("kubectl get all -l platform=production-store shows all that the claim made", storeIsLabelled).
		Quick("an order is placed through an ingress controller with TLS", storeTakesOrders).
		Full("products, cart and order are seen in a browser", storeIsSeen).
		Full("both tiers roll to another image and back under 50 requests a second without a failed one", storeRolls).
		Full("every pod is evicted, as by a drain, under 50 requests a second without a failed one", storeIsDrained).
		Full("the cache's pod is lost under 50 requests a second without a failed one", storeLosesCache).
		Cleared().
		Feature()
}

// fileStore applies the claim as its team does: with kubectl, and with no rights but to edit the
// namespace.
func fileStore(ctx context.Context, s *shop) error {
	if err := join(ctx, s.namespace); err != nil {
		return err
	}
	_, err := harness.Kubectl(ctx, "apply", "--as="+teamUser, "--filename="+published)
	return err
}

func storeComesUp(ctx context.Context, n notes) error {
	start := time.Now()
	if err := store.ready(ctx); err != nil {
		return err
	}
	n.Addf("Ready after %.0fs", time.Since(start).Seconds())
	if err := cluster.AuditRestricted(ctx, store.namespace); err != nil {
		return err
	}
	want := map[string]string{store.part("frontend-web"): "5", store.part("backend-web"): "3"}
	for name, replicas := range want {
		u := store.world.Get("Deployment", name)
		if have := harness.Field(u, "status", "availableReplicas"); have != replicas {
			return fmt.Errorf("Deployment %s has %s pods, not %s", name, have, replicas)
		}
		if image := harness.Image(u); !strings.HasPrefix(image, companyRegistry+"/") {
			return fmt.Errorf("Deployment %s runs %s, not what the claim asks for", name, image)
		}
	}
	servers := harness.Field(store.world.Get("StatefulSet", store.part("database-postgresql")), "status", "readyReplicas")
	if servers != "3" {
		return fmt.Errorf("the database has %s servers, not 3", servers)
	}
	out, err := harness.Kubectl(ctx, "get", "ecommerceplatform", storeName, "--as="+teamUser, "--namespace="+storeNamespace, "--no-headers")
	n.Addf("%s", out)
	return err
}

// inAll are the kinds that kubectl get all shows, with their resource names.
var inAll = map[string]string{
	"Pod": "pod", "Service": "service", "Deployment": "deployment.apps", "ReplicaSet": "replicaset.apps", "StatefulSet": "statefulset.apps",
	"DaemonSet": "daemonset.apps", "Job": "job.batch", "CronJob": "cronjob.batch", "HorizontalPodAutoscaler": "horizontalpodautoscaler.autoscaling",
}

// unlabelled reports whether an object does not need the claim's label: it belongs to the tests, or
// another controller creates it.
func unlabelled(k harness.Key) bool {
	switch {
	case harness.IsClient(k.Name), k.Name == teamUser, k.Name == tlsSecret:
		return true
	case k.Kind == "EcommercePlatform":
		// It is the object that the label names.
		return true
	case k.Kind == "PodMetrics", k.Kind == "Lease":
		return true
	case k.Kind == "ConfigMap" && strings.HasSuffix(k.Name, "-leader"):
		// Patroni creates it, with the labels by which it finds it again.
		return true
	}
	return false
}

// storeIsLabelled compares the output of the published command with all objects in the namespace,
// which contains nothing but the claim. What the command has to show are the objects that exist both
// before and after it: the pods of Jobs come and go meanwhile.
func storeIsLabelled(ctx context.Context, n notes) error {
	if err := store.ready(ctx); err != nil {
		return err
	}
	before, err := cluster.Objects(ctx, storeNamespace)
	if err != nil {
		return err
	}
	existed := map[harness.Key]bool{}
	for _, o := range before {
		existed[harness.KeyOf(&o)] = true
	}
	out, err := harness.Kubectl(ctx, "get", "all", "--selector=platform="+storeName, "--as="+teamUser, "--namespace="+storeNamespace, "--output=name")
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	for line := range strings.Lines(out) {
		shown[strings.TrimSpace(line)] = true
	}
	objects, err := cluster.Objects(ctx, storeNamespace)
	if err != nil {
		return err
	}
	var errs []error
	rest := map[string]int{}
	for _, o := range objects {
		k := harness.KeyOf(&o)
		if unlabelled(k) {
			continue
		}
		resource, ok := inAll[k.Kind]
		switch {
		case o.GetLabels()["platform"] != storeName:
			errs = append(errs, fmt.Errorf("%s has no label platform=%s", k, storeName))
		case !ok:
			rest[k.Kind]++
		case existed[k] && !shown[resource+"/"+k.Name]:
			errs = append(errs, fmt.Errorf("kubectl get all does not show %s", k))
		}
	}
	n.Addf("%d objects shown, and beside them %v", len(shown), rest)
	for _, k := range []string{"Pod", "Service", "Deployment", "StatefulSet"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(shown)), func(s string) bool { return strings.HasPrefix(s, inAll[k]+"/") }) {
			errs = append(errs, fmt.Errorf("kubectl get all shows no %s", k))
		}
	}
	return errors.Join(errs...)
}

// tlsSecret is the name of the Secret with the team's certificate.
const tlsSecret = "shop-tls"

// authority is the certificate of the authority that issued the store's certificate, and
// certificate the latter, as PEM.
var authority, certificate string

// certify creates the Secret with the store's certificate, with the rights of the team.
func certify(ctx context.Context, team *harness.Cluster) error {
	return once.Do("certificate", func() error {
		ca, cert, key, err := harness.Certificate(storeHost)
		if err != nil {
			return err
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: tlsSecret}, Type: corev1.SecretTypeTLS,
			StringData: map[string]string{"tls.crt": cert, "tls.key": key},
		}
		if _, err := team.Kube.CoreV1().Secrets(storeNamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot create Secret %s: %w", tlsSecret, err)
		}
		authority, certificate = ca, cert
		return nil
	})
}

// openStore opens the store to customers outside of the cluster, once.
func openStore(ctx context.Context) error {
	if err := store.ready(ctx); err != nil {
		return err
	}
	return once.Do("open store", func() error {
		if err := startIngress(ctx); err != nil {
			return err
		}
		as, err := cluster.As(teamUser)
		if err != nil {
			return err
		}
		if err := certify(ctx, as); err != nil {
			return err
		}
		ingress := harness.Patch{"host": storeHost, "className": ingressClass, "tls": harness.Patch{"secretName": tlsSecret}}
		u, err := as.Patch(ctx, "EcommercePlatform", storeNamespace, storeName, harness.Patch{"spec": harness.Patch{"ingress": ingress}})
		if err != nil {
			return err
		}
		if err := store.world.AwaitSeen(ctx, u); err != nil {
			return err
		}
		if err := store.ready(ctx); err != nil {
			return err
		}
		store.host, store.ca = storeHost, authority
		// The ingress controller applies the Ingress a moment later.
		return store.awaitServed(ctx)
	})
}

func storeTakesOrders(ctx context.Context, n notes) error {
	if err := openStore(ctx); err != nil {
		return err
	}
	id, err := store.order(ctx)
	if err != nil {
		return err
	}
	url := harness.Field(store.world.Get("EcommercePlatform", storeName), "status", "endpoints", "url")
	if want := "https://" + storeHost; !strings.HasPrefix(url, want) {
		return fmt.Errorf("status.endpoints.url is %q, not %s", url, want)
	}
	n.Addf("by %s", url)
	return store.rows(ctx, n, []string{id})
}

// roll rolls both tiers to other images.
func roll(ctx context.Context, s *shop, backend, frontend string) error {
	err := s.change(ctx, harness.Patch{"spec": harness.Patch{
		"backend": harness.Patch{"image": backend}, "frontend": harness.Patch{"image": frontend},
	}})
	if err != nil {
		return err
	}
	err = s.world.Await(ctx, settled, "both tiers to have rolled", func() (bool, string) {
		if ok, instead := s.rolledOut(s.part("backend-web"), backend); !ok {
			return false, instead
		}
		return s.rolledOut(s.part("frontend-web"), frontend)
	})
	if err != nil {
		return fmt.Errorf("%w (%s)", err, s.status())
	}
	return s.ready(ctx)
}

func storeRolls(ctx context.Context, n notes) error {
	if err := openStore(ctx); err != nil {
		return err
	}
	return store.under(ctx, n, func() error {
		if err := roll(ctx, store, cluster.Registry+"/shop-backend:v2", cluster.Registry+"/shop-frontend:v2"); err != nil {
			return err
		}
		return roll(ctx, store, companyRegistry+"/ecommerce-backend:v2.1.0", companyRegistry+"/ecommerce-frontend:v2.1.0")
	})
}

// storeIsDrained evicts all pods of the store, one after the other, as fast as the disruption
// budgets allow.
func storeIsDrained(ctx context.Context, n notes) error {
	if err := openStore(ctx); err != nil {
		return err
	}
	start := time.Now()
	err := store.under(ctx, n, func() error {
		refused, pods := 0, store.pods()
		for _, p := range pods {
			r, err := cluster.Evict(ctx, storeNamespace, p.GetName(), settled)
			if err != nil {
				return err
			}
			refused += r
		}
		n.Addf("%d pods evicted, %d times refused, in %.0fs", len(pods), refused, time.Since(start).Seconds())
		old := map[string]bool{}
		for _, p := range pods {
			old[string(p.GetUID())] = true
		}
		err := store.world.Await(ctx, settled, "all pods to be others", func() (bool, string) {
			for _, p := range store.pods() {
				if old[string(p.GetUID())] {
					return false, p.GetName() + " is still there"
				}
			}
			return true, ""
		})
		return errors.Join(err, store.ready(ctx))
	})
	return err
}

// storeLosesCache kills the cache's pod without notice, several times. Carts are in the database
// too.
func storeLosesCache(ctx context.Context, n notes) error {
	if err := openStore(ctx); err != nil {
		return err
	}
	return store.under(ctx, n, func() error {
		for range 4 {
			if err := loseCache(ctx, n); err != nil {
				return err
			}
		}
		return store.ready(ctx)
	})
}

func loseCache(ctx context.Context, n notes) error {
	was := store.caches()
	if len(was) != 1 {
		return fmt.Errorf("the cache has %d pods, not one", len(was))
	}
	start := time.Now()
	if err := cluster.Kube.CoreV1().Pods(storeNamespace).Delete(ctx, was[0].GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", was[0].GetName(), err)
	}
	err := store.world.Await(ctx, settled, "the cache to be back", func() (bool, string) {
		now := store.caches()
		back := len(now) == 1 && now[0].GetUID() != was[0].GetUID() && harness.ClaimOf(now[0]).Is("Ready")
		return back, fmt.Sprintf("it has %d pods", len(now))
	})
	n.Addf("back after %.1fs", time.Since(start).Seconds())
	return err
}

// caches returns the pods of the shop's cache.
func (s *shop) caches() []*unstructured.Unstructured {
	return slices.DeleteFunc(s.pods(), func(p *unstructured.Unstructured) bool { return !strings.HasPrefix(p.GetName(), s.part("cache-")) })
}
