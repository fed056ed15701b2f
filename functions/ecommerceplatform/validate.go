package ecommerceplatform

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/functions/webapp"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// Limits of the env, envFrom and volumes of a WebApp. The config takes one envFrom of a tier,
// the addresses of the others some of its env, and the backend needs a volume each to verify
// its database and its cache.
const (
	mostEnv     = 100
	mostEnvFrom = 33
	mostVolumes = 20
)

// leastMemory is the least memory with which Redis starts.
var leastMemory = resource.MustParse("16Mi")

// validate repeats the checks of the XRD, for claims that bypass them, and adds those that need a
// parser. The intents of the nested claims check the rest.
func (s *shop) validate() error {
	spec, p := &s.spec, s.profile
	for _, t := range []struct {
		name     string
		workload *appsv1.Workload
		replicas *int32
	}{
		{frontend, &spec.Frontend.Workload, spec.Frontend.Replicas},
		{backend, &spec.Backend.Workload, spec.Backend.Replicas},
	} {
		if t.workload.Image == "" {
			return compose.Invalidf("%s.image is missing", t.name)
		}
		if len(spec.Config) > 0 && len(t.workload.EnvFrom) >= mostEnvFrom {
			return compose.Invalidf("%s.envFrom may have at most %d entries beside a config, has %d", t.name, mostEnvFrom-1, len(t.workload.EnvFrom))
		}
		if most := mostEnv - len(unset(s.wires(t.name), t.workload.Env)); len(t.workload.Env) > most {
			return compose.Invalidf("%s.env may have at most %d entries beside the shop's own, has %d", t.name, most, len(t.workload.Env))
		}
		if err := webapp.CheckWorkload(t.workload, environment(spec)); err != nil {
			return compose.Invalidf("%s.%v", t.name, err)
		}
		if err := build.CheckReplicas(t.name+".", " in "+string(environment(spec)), t.replicas, t.workload.Autoscaling, p.MaxReplicas); err != nil {
			return compose.Invalidf("%v", err)
		}
	}
	if err := build.CheckConfig(spec.Config); err != nil {
		return err
	}
	for _, w := range spec.Backend.Workers {
		if err := build.CheckReplicas("backend.workers "+w.Name+": ", " in "+string(environment(spec)), w.Replicas, w.Autoscaling, p.MaxReplicas); err != nil {
			return compose.Invalidf("%v", err)
		}
	}
	for _, j := range spec.Backend.CronJobs {
		if _, _, err := build.ParseSchedule(string(j.Schedule), j.TimeZone); err != nil {
			return compose.Invalidf("backend.cronJobs %s: %v", j.Name, err)
		}
	}
	if d := spec.Database; d != nil {
		if q, err := resource.ParseQuantity(d.Storage); d.Storage != "" && (err != nil || q.Sign() <= 0) {
			return compose.Invalidf("database.storage must be a quantity above zero, like 20Gi: is %q", d.Storage)
		}
	}
	return validateCache(spec.Cache)
}

// checkPods checks the pod options of the nested claims, whose own messages would name other paths.
func (s *shop) checkPods(c *compose.Claim) error {
	options := map[string]*appsv1.PodOptions{frontend: &s.spec.Frontend.PodOptions, backend: &s.spec.Backend.PodOptions}
	if d := s.spec.Database; d != nil {
		options[database] = &d.PodOptions
	}
	for _, part := range slices.Sorted(maps.Keys(options)) {
		if err := build.CheckPods(options[part], c.SpecAt(part)); err != nil {
			return compose.Invalidf("%s.%v", part, err)
		}
	}
	return nil
}

// wires returns the environment variables by which a tier finds the others.
func (s *shop) wires(tier string) []string {
	if tier == frontend {
		return []string{envBackendURL}
	}
	names := []string{envDatabaseURL}
	if s.hasCache() && len(unset([]string{envRedisURL}, s.spec.Backend.Env)) > 0 {
		names = append(names, envRedisURL, envRedisVersion)
	}
	if s.verifiesCache() && s.cacheHasTLS() {
		names = append(names, envRedisCA)
	}
	return names
}

// unset returns those of the names that a claim does not set itself.
func unset(names []string, own []corev1.EnvVar) []string {
	return slices.DeleteFunc(names, func(n string) bool {
		return slices.ContainsFunc(own, func(e corev1.EnvVar) bool { return e.Name == n })
	})
}

// evictionPolicies are those that Redis supports.
var evictionPolicies = []platformv1.EvictionPolicy{
	"noeviction", platformv1.EvictAllKeysLRU, "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
}

func validateCache(c *platformv1.Cache) error {
	if c == nil {
		return nil
	}
	if c.EvictionPolicy != "" && !slices.Contains(evictionPolicies, c.EvictionPolicy) {
		return compose.Invalidf("cache.evictionPolicy must be one of %s: is %q", joined(evictionPolicies), c.EvictionPolicy)
	}
	if c.Memory != "" {
		if q, err := resource.ParseQuantity(c.Memory); err != nil || q.Cmp(leastMemory) < 0 {
			return compose.Invalidf("cache.memory must be a quantity of at least 16Mi: is %q", c.Memory)
		}
	}
	return nil
}

func joined(policies []platformv1.EvictionPolicy) string {
	out := make([]string, 0, len(policies))
	for _, p := range policies {
		out = append(out, string(p))
	}
	return strings.Join(out, ", ")
}
