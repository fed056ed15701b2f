// Package ecommerceplatform turns an EcommercePlatform claim into a database, a cache, a backend
// and a frontend, wired by Secrets and started in the order of their dependencies. Database,
// backend and frontend are claims of their own kinds, whose packages decide what they compose.
package ecommerceplatform

import (
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/functions/databasecluster"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/label"
	"github.com/storeplane/storeplane/internal/profile"
	"github.com/storeplane/storeplane/internal/settings"
)

// Names of components. The cache's server is not named after its part: earlier releases composed a
// StatefulSet under that name, which Crossplane would not remove if a Deployment took it over.
const (
	database    = "database"
	cache       = label.ComponentCache
	cacheServer = "cache-server"
	cacheSecret = "cache-secret"
	cacheTLS    = "cache-tls"
	cacheSvc    = "cache-service"
	cachePolicy = "cache-networkpolicy"
	cacheSA     = "cache-account"

	cacheMonitor = "cache-podmonitor"
	backend      = "backend"
	frontend     = "frontend"
	ingress      = "ingress"

	ingressPolicy = "ingress-networkpolicy"
	protection    = "protection"
)

// platformName is the value of the label app.kubernetes.io/name of the platform's own objects.
const platformName = "ecommerceplatform"

// shop is what the builders read of a claim.
type shop struct {
	build.Scope

	spec     platformv1.EcommercePlatformSpec
	profile  *profile.Profile
	settings settings.Settings

	// connection is the key of the database's connection Secret that the backend reads.
	connection string

	// cachePassword is empty without a cache. cacheSalt is the secret key of the digests in
	// cacheVersion and cacheCertificateVersion, which reveal nothing without it.
	cachePassword, cacheSalt string

	// metricsPassword is the password of the user that reads the cache's
	// metrics, if they are exported.
	metricsPassword string

	// cacheVersion changes with the password that Redis reads, and with the
	// authority that clients read.
	cacheVersion string

	// cacheCertificates are those of a cache with TLS. cacheCertificateVersion changes with the
	// certificate that Redis reads.
	cacheCertificates       build.Certificates
	cacheCertificateVersion string

	// cacheServesTLS is true if Redis has TLS according to the stored Secret.
	cacheServesTLS bool

	// scraped is true if metrics are exported and the cluster has PodMonitors.
	scraped bool

	// config is nil if the claim has none.
	config *build.Config

	// allowance is the annotation of the tiers that names the AppConfigs which may change
	// their workloads, or nil.
	allowance map[string]string

	// bundles are those of the config that the tiers run and shall run.
	bundles bundles

	// upgrade defines when changes that no user has requested are applied.
	upgrade *compose.Upgrade

	// degraded is the name and the message of the first nested claim that is Degraded, or "".
	degraded string

	// podFailure is the first failure of a nested claim's pods, or of the cache's, or "".
	podFailure string

	// cacheWaits is what keeps the cache's pod from becoming ready.
	cacheWaits health.Wait
}

// Intent returns the intent of EcommercePlatforms, with defaults for settings that the
// installation does not set.
func Intent(defaults settings.Settings) compose.Intent {
	return func(c *compose.Claim) (*compose.Plan, error) {
		s, p := &shop{Scope: build.ScopeOf(c)}, &compose.Plan{}
		err := s.read(c, defaults)
		switch {
		case err == nil:
			p = s.plan()
			p.Upgrade = s.upgrade
		case !compose.IsInvalid(err):
			return nil, err
		}
		p.Maintain = func() (map[string]*structpb.Struct, error) { return s.maintenance(c) }
		return p, err
	}
}

// read reads the claim, the installation's settings and what is observed. It refuses
// a claim that is invalid.
func (s *shop) read(c *compose.Claim, defaults settings.Settings) (err error) {
	if err := c.Spec(&s.spec); err != nil {
		return err
	}
	s.profile = profile.Of(s.spec.Environment)
	if s.settings, err = settings.Read(c, defaults); err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	if err := s.checkPods(c); err != nil {
		return err
	}
	db := s.database()
	if err := databasecluster.Check(&db.Spec); err != nil {
		return compose.Invalidf("database.%v", err)
	}
	if err := databasecluster.CheckBackup(&db.Spec, &s.settings); err != nil {
		return compose.Invalidf("database.%v", err)
	}
	if err := guardrails.Enforce(guardrails.EcommercePlatform(c.Namespace(), &s.spec), s.settings.Policy); err != nil {
		return err
	}
	if err := build.CheckIngress(c, s.spec.Ingress); err != nil {
		return err
	}
	if s.connection, err = s.connectsBy(c); err != nil {
		return err
	}
	s.scraped = s.monitored() && c.HasKind(build.PodMonitorSchema, cacheMonitor)
	if err := s.readCache(c); err != nil {
		return err
	}
	if s.config, err = build.ReadConfig(c, s.Scope, s.spec.Config); err != nil {
		return err
	}
	s.allowance = build.ConfigAllowance(c, s.config)
	if err := s.readBundles(c); err != nil {
		return err
	}
	s.upgrade, err = s.settings.Upgrade(s.spec.Environment, s.spec.Maintenance, s.bundles.shall[backend], s.bundles.shall[frontend], build.KeyedDigest(s.cacheSalt, s.cachePassword))
	if err != nil {
		return err
	}
	if s.degraded, s.podFailure, err = nestedFailures(c); err != nil {
		return err
	}
	return s.awaitCache(c)
}

// plan lists the components of a claim.
func (s *shop) plan() *compose.Plan {
	p := &compose.Plan{}
	add := func(comp compose.Component) { p.Components = append(p.Components, comp) }

	add(compose.Component{Name: database, Object: s.database(), HoldsData: true})
	needs := []string{database}
	if s.hasCache() {
		add(compose.Component{Name: cacheSecret, Part: cache, Object: s.cacheSecret()})
		if s.cacheHasTLS() || s.cacheServesTLS {
			add(compose.Component{Name: cacheTLS, Part: cache, Object: s.cacheCertificate()})
		}
		add(compose.Component{Name: cacheSA, Part: cache, Object: build.ServiceAccount(s.Scope, cache, cacheApp)})
		add(compose.Component{Name: cacheSvc, Part: cache, Object: s.cacheService()})
		add(compose.Component{Name: cachePolicy, Part: cache, Object: s.cachePolicy()})
		add(compose.Component{Name: cacheServer, Part: cache, Object: s.cacheServer(), Health: s.cacheHealth})
		if s.scraped {
			add(compose.Component{Name: cacheMonitor, Part: cache, Object: s.cachePodMonitor()})
		}
		needs = append(needs, cacheServer)
	}
	if s.config != nil {
		// It waits for nothing: each change of what a claim is composed of takes events, of which
		// Crossplane allows a claim a limited number.
		add(compose.Component{Name: build.ConfigComponent, Part: build.ConfigPart, Object: s.appConfig()})
	}
	b := s.bundles
	add(compose.Component{
		Name: backend, Make: func() compose.Object { return s.backend() },
		// The backend's migration cannot be given another bundle once it has begun.
		After:       slices.Concat(needs, s.config.Awaits()),
		ChangeAfter: s.config.Holds(b.runs[backend], b.shall[backend]),
	})
	add(compose.Component{
		Name: frontend, Make: func() compose.Object { return s.frontend() },
		After: []string{backend}, ChangeAfter: s.config.Holds(b.runs[frontend], b.shall[frontend]),
	})
	if s.spec.Ingress != nil {
		add(compose.Component{Name: ingressPolicy, Part: ingress, Make: func() compose.Object { return s.ingressPolicy() }, After: []string{frontend}})
		add(s.ingress())
	}

	if s.protected() {
		add(compose.Component{Name: protection, Object: build.Protection(s.Meta(protection, platformName), s.Claim, platformv1.GroupVersion.String(), platformv1.EcommercePlatformKind)})
	}

	p.PollInterval = s.settings.Interval()
	p.Status = func(o compose.Outcome) any { return s.status(o) }
	p.Conditions = s.conditions
	return p
}

func (s *shop) conditions(o compose.Outcome) []compose.Condition {
	return []compose.Condition{
		compose.PartReady(platformv1.TypeDatabaseReady, o, database),
		compose.PartReady(platformv1.TypeCacheReady, o, cache),
		compose.PartReady(platformv1.TypeBackendReady, o, backend),
		compose.PartReady(platformv1.TypeFrontendReady, o, frontend),
		compose.PartReady(platformv1.TypeIngressReady, o, ingress),
		s.config.Condition(o),
	}
}

// protected reports whether the deletion of the claim is refused.
func (s *shop) protected() bool {
	if s.spec.DeletionProtection != nil {
		return *s.spec.DeletionProtection
	}
	return s.profile.DeletionProtection
}

func (s *shop) hasCache() bool { return hasCache(&s.spec) }

func hasCache(s *platformv1.EcommercePlatformSpec) bool {
	c := s.Cache
	return c == nil || c.Enabled == nil || *c.Enabled
}

// port returns the port of a tier.
func port(w *appsv1.Workload) int32 {
	if w.Port != nil {
		return *w.Port
	}
	return 8080
}
