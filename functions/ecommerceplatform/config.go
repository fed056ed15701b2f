package ecommerceplatform

import (
	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/functions/webapp"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
)

// appConfig returns the AppConfig of both tiers: a config is good when both are healthy with it,
// and is rolled back in both when one is not.
func (s *shop) appConfig() *configv1.AppConfig {
	return s.config.AppConfig(platformName, environment(&s.spec), webapp.DeploymentName(s.Name(backend)), webapp.DeploymentName(s.Name(frontend)))
}

// bundles are the bundles of the config by tier: those that the tiers run, and
// those that they shall run.
type bundles struct{ runs, shall map[string]string }

// readBundles decides which bundle each tier shall run. A new config reaches the frontend once the
// backend is healthy with it, so that a config that breaks the backend breaks nothing else. A
// rollback reaches both at once.
func (s *shop) readBundles(c *compose.Claim) error {
	want := s.config.Bundle()
	s.bundles = bundles{runs: map[string]string{}, shall: map[string]string{backend: want, frontend: want}}
	if s.config == nil {
		return nil
	}
	for _, tier := range []string{backend, frontend} {
		w := struct {
			Spec struct {
				EnvFrom []corev1.EnvFromSource `json:"envFrom"`
			} `json:"spec"`
		}{}
		if _, err := c.ReadObserved(tier, &w); err != nil {
			return err
		}
		s.bundles.runs[tier] = build.BundleIn(s.Scope, w.Spec.EnvFrom)
	}
	isProven := s.bundles.runs[backend] == want && health.Of(c.Observed(backend)).IsHealthy()
	if s.config.IsRollingOut() && !isProven && c.Observed(frontend) != nil {
		s.bundles.shall[frontend] = s.bundles.runs[frontend]
	}
	return nil
}
