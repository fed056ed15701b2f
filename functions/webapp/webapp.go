// Package webapp turns a WebApp claim into a Deployment behind a Service, and the objects that
// keep it available and safe.
package webapp

import (
	"fmt"
	"slices"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/label"
	"github.com/storeplane/storeplane/internal/profile"
	"github.com/storeplane/storeplane/internal/settings"
)

// Names of components. Those of a migration, of CronJobs and of workers have
// a suffix after a hyphen.
const (
	web       = label.ComponentWeb
	account   = "account"
	migration = label.ComponentMigration
	service   = "service"
	policy    = "networkpolicy"
	scaler    = "autoscaler"
	budget    = "disruptionbudget"
	ingress   = "ingress"
	cron      = "cron"
	worker    = "worker"
	monitor   = "podmonitor"
	jobs      = "jobs"
)

// defaultPort is the port of an application whose claim names none.
const defaultPort = 8080

// app is what the builders read of a claim.
type app struct {
	build.Scope

	spec     appsv1.WebAppSpec
	profile  *profile.Profile
	settings settings.Settings
	live     live

	// config is nil if the claim has none.
	config *build.Config

	// allowance is the annotation of workloads that names the AppConfigs which
	// may change them, or nil.
	allowance map[string]string

	// scraped is true if the claim has metrics and the cluster has PodMonitors.
	scraped bool
}

// Intent returns the intent of WebApps, with defaults for settings that the
// installation does not set.
func Intent(defaults settings.Settings) compose.Intent {
	return func(c *compose.Claim) (*compose.Plan, error) {
		a := &app{Scope: build.ScopeOf(c)}
		if err := c.Spec(&a.spec); err != nil {
			return nil, err
		}
		a.profile = profile.Of(a.spec.Environment)
		var err error
		if a.settings, err = settings.Read(c, defaults); err != nil {
			return nil, err
		}
		if err := validate(&a.spec, a.profile); err != nil {
			return nil, err
		}
		if err := build.CheckPods(&a.spec.PodOptions, c.SpecAt()); err != nil {
			return nil, err
		}
		if err := guardrails.Enforce(guardrails.WebApp(c.Namespace(), &a.spec), a.settings.Policy); err != nil {
			return nil, err
		}
		if err := build.CheckIngress(c, a.spec.Ingress); err != nil {
			return nil, err
		}
		if err := a.checkSecurity(c); err != nil {
			return nil, err
		}
		a.scraped = a.isScraped(c)
		if a.live, err = observe(c, &a.spec, a.migrationName(), *a.port()); err != nil {
			return nil, err
		}
		if a.config, err = build.ReadConfig(c, a.Scope, a.spec.Config); err != nil {
			return nil, err
		}
		a.allowance = build.ConfigAllowance(c, a.config)
		upgrade, err := a.settings.Upgrade(a.spec.Environment, a.spec.Maintenance)
		if err != nil {
			return nil, err
		}
		plan := a.plan()
		plan.Upgrade = upgrade
		return plan, nil
	}
}

// plan lists the components of a claim.
func (a *app) plan() *compose.Plan {
	p := &compose.Plan{Components: make([]compose.Component, 0, 10+len(a.spec.CronJobs))}
	add := func(comp compose.Component) { p.Components = append(p.Components, comp) }

	if a.config != nil {
		add(compose.Component{Name: build.ConfigComponent, Part: build.ConfigPart, Object: a.config.AppConfig(a.name(), a.spec.Environment, a.Name(web))})
	}
	add(compose.Component{Name: account, Part: web, Object: build.ServiceAccount(a.Scope, web, a.name())})

	var gates []string
	for i := range a.live.superseded {
		add(a.live.superseded[i].declared())
		gates = append(gates, a.live.superseded[i].component)
	}
	after := gates
	if a.spec.Migration != nil {
		m := a.migration(slices.Concat(gates, a.config.Awaits()))
		add(m)
		gates = append(slices.Clone(gates), m.Name)
		if a.live.review {
			after = gates // A review shows the order of creation, and has no paused objects.
		}
	}

	// What the pods mount is applied in the same pass: to wait until it is stored would cost a
	// pass, and the kubelet waits for it anyway. Deployments are paused until the pods' account
	// exists and the migration has completed.
	changeGates := slices.Concat(gates, a.config.Holds(a.live.bundle(a.Scope), a.config.Bundle()))
	paused, workerGates := a.live.isPaused(&a.live.liveDeployment), changeGates
	if a.live.Spec.Paused {
		changeGates = gates // The start of a paused Deployment is no change of the configuration.
	}
	deployment := compose.Component{Name: web, Paused: paused, Make: func() compose.Object { return a.deployment() }, After: after, ChangeAfter: changeGates, Health: a.live.judged(health.Of)}
	if a.spec.Autoscaling != nil {
		// While pods are added the others serve, so the component stays healthy.
		deployment.Health, deployment.Scaled = a.live.judged(health.Available), true
	}
	a.live.serves = a.live.exists && !paused && deployment.Health(a.live.observed).IsHealthy()
	add(deployment)
	add(compose.Component{Name: service, Part: web, Object: a.service()})
	add(compose.Component{Name: policy, Part: web, Object: a.networkPolicy()})
	if a.hasJobs() {
		add(compose.Component{Name: policy + "-" + jobs, Part: web, Object: a.jobsPolicy()})
	}
	if a.spec.Autoscaling != nil {
		add(compose.Component{Name: scaler, Part: web, Make: func() compose.Object { return a.autoscaler(web, a.spec.Autoscaling) }, After: []string{web}})
	}
	if a.profile.HighlyAvailable {
		add(compose.Component{Name: budget, Part: web, Object: build.DisruptionBudget(a.Scope, web, a.name())})
	}
	if a.scraped {
		add(compose.Component{Name: monitor, Part: web, Object: a.podMonitor()})
	}
	for i := range a.spec.Workers {
		p.Components = append(p.Components, a.workerComponents(&a.spec.Workers[i], after, gates, workerGates)...)
	}
	for i := range a.spec.CronJobs {
		add(a.cronJobComponent(&a.spec.CronJobs[i], after, gates))
	}
	if a.spec.Ingress != nil {
		add(a.ingress())
	}

	p.PollInterval = a.settings.Interval()
	p.Status = func(o compose.Outcome) any { return a.status(o) }
	p.Conditions = func(o compose.Outcome) []compose.Condition {
		return []compose.Condition{a.config.Condition(o), compose.PartReady(appsv1.TypeMigrationReady, o, migration)}
	}
	return p
}

// ingress returns the component of an Ingress, or of an HTTPRoute if the claim names a Gateway.
func (a *app) ingress() compose.Component {
	meta, in := a.Named(a.Name(web), ingress, a.name()), *a.spec.Ingress
	if in.Gateway != nil {
		return compose.Component{Name: build.RouteComponent, Part: ingress, Object: build.HTTPRoute(meta, in, a.Name(web), *a.port()), Health: build.RouteHealth}
	}
	return compose.Component{Name: ingress, Object: build.Ingress(a.Scope, meta, in, a.settings.Ingress.ClassName, a.Name(web), *a.port())}
}

// name returns what runs, the value of the label app.kubernetes.io/name.
func (a *app) name() string { return "webapp" }

func (a *app) port() *int32 {
	if a.spec.Port != nil {
		return a.spec.Port
	}
	return new(int32(defaultPort))
}

// ServiceName returns the name of the Service of a WebApp.
func ServiceName(name string) string { return name + "-" + web }

// DeploymentName returns the name of the Deployment of a WebApp.
func DeploymentName(name string) string { return name + "-" + web }

// PodLabels returns the labels that select the pods of a WebApp that serve requests.
func PodLabels(name string) map[string]string { return build.Scope{Claim: name}.Selector(web) }

// URL returns the URL of a WebApp inside the cluster.
func URL(name, namespace string, port int32) string {
	return fmt.Sprintf("http://%s.%s.svc:%d", ServiceName(name), namespace, port)
}
