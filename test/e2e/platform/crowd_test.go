//go:build e2e

package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

const (
	crowdNamespace = suiteName + "-crowd"
	// crowdSize is how many claims are applied at once.
	crowdSize = 20
	// crowded is how long they may take together, given that all databases are initialized on the
	// cores of one cluster.
	crowded = 15 * time.Minute
)

func crowd() types.Feature {
	return tests.Feature("twenty shops at once", crowdNamespace).
		Full("twenty shops filed at once are all Ready, and no circuit breaker opens", crowdComesUp).
		Feature()
}

// requests is a number of requests in all, and the numbers made by individual clients.
type requests struct {
	all float64
	by  map[string]float64
}

// countRequests returns how many requests the API server has answered, and how many the pods of
// Crossplane and of the provider have made, as far as they serve metrics.
func countRequests(ctx context.Context) (requests, error) {
	m, err := cluster.APIServerMetrics(ctx)
	if err != nil {
		return requests{}, err
	}
	r := requests{all: m.Sum("apiserver_request_total", nil), by: map[string]float64{}}
	for what, label := range map[string]string{"Crossplane": "app=crossplane", "the provider": providerLabel} {
		pods, err := cluster.List(ctx, "Pod", systemNamespace, label)
		if err != nil {
			return r, err
		}
		for _, p := range pods {
			// Crossplane may be installed without metrics.
			if m, err := cluster.PodMetrics(ctx, systemNamespace, p.GetName(), metricsPort); err == nil {
				r.by[what] += m.Sum("rest_client_requests_total", nil)
			}
		}
	}
	return r, nil
}

func crowdComesUp(ctx context.Context, n notes) error {
	if err := namespace(ctx, crowdNamespace); err != nil {
		return err
	}
	w, err := cluster.Watch(ctx, crowdNamespace)
	if err != nil {
		return err
	}
	defer w.Stop()
	before, err := countRequests(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	var names []string
	for i := range crowdSize {
		name := fmt.Sprintf("store-%02d", i+1)
		u, err := manifests.Read("platform/store.yaml", map[string]string{"NAMESPACE": crowdNamespace, "NAME": name, "REGISTRY": cluster.Registry})
		if err != nil {
			return err
		}
		if _, err := cluster.Create(ctx, u); err != nil {
			return err
		}
		names = append(names, name)
	}
	err = w.Await(ctx, crowded, "all shops to be Ready", func() (bool, string) {
		var waiting []string
		for _, name := range names {
			if c := w.Claim("EcommercePlatform", name); !c.Ready() {
				waiting = append(waiting, name+": "+c.String())
			}
		}
		return len(waiting) == 0, fmt.Sprintf("%d are not, among them %s", len(waiting), first(waiting))
	})
	took := time.Since(start)
	after, aerr := countRequests(ctx)
	if err := errors.Join(err, aerr, w.NeverFalse("Responsive")); err != nil {
		return err
	}
	seconds := waited(w, names)
	n.Addf("all Ready after %.0fs, the first after %.0fs, half of them after %.0fs", took.Seconds(), seconds[0], seconds[len(seconds)/2])
	n.Addf("%.0f API requests a claim by all clients", (after.all-before.all)/crowdSize)
	for _, who := range []string{"Crossplane", "the provider"} {
		if made := after.by[who] - before.by[who]; made > 0 {
			n.Addf("%.0f a claim by %s", made/crowdSize, who)
		}
	}
	return nil
}

// waited returns how many seconds each claim took from its creation until it was Ready, sorted.
func waited(w *harness.World, names []string) []float64 {
	var out []float64
	for _, name := range names {
		h := w.History("EcommercePlatform", name)
		i := slices.IndexFunc(h, func(v harness.Version) bool { return harness.ClaimOf(v.Object).Ready() })
		if i >= 0 {
			out = append(out, h[i].At.Sub(h[0].At).Seconds())
		}
	}
	slices.Sort(out)
	return out
}

func first(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return all[0]
}
