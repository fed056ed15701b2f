// Package databasecluster turns a DatabaseCluster claim into PostgreSQL servers
// under Patroni. Failover is Patroni's: it happens in the pods and needs
// neither Crossplane nor this function alive.
package databasecluster

import (
	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/profile"
	"github.com/storeplane/storeplane/internal/settings"
)

// Names of components.
const (
	postgresql  = "postgresql"
	credentials = "credentials"
	connection  = "connection"
	account     = "account"
	role        = "role"
	roleBinding = "rolebinding"
	config      = "config"
	state       = "patroni-config"
	failover    = "patroni-failover"
	syncState   = "patroni-sync"
	headless    = "headless"
	primary     = "primary"
	replica     = "replica"
	policy      = "networkpolicy"
	budget      = "disruptionbudget"
)

// appName is what runs, for app.kubernetes.io/name.
const appName = "postgresql"

// port of PostgreSQL, and of Patroni's REST API.
const (
	port    = 5432
	apiPort = 8008
)

// cluster is what the builders know of a claim.
type cluster struct {
	build.Scope

	spec     appsv1.DatabaseClusterSpec
	profile  *profile.Profile
	settings settings.Settings
	storage  string
	secrets  secrets
}

// Intent of a DatabaseCluster.
func Intent(defaults settings.Settings) compose.Intent {
	return func(c *compose.Claim) (*compose.Plan, error) {
		d := &cluster{Scope: build.ScopeOf(c)}
		if err := c.Spec(&d.spec); err != nil {
			return nil, err
		}
		d.profile = profile.Of(d.spec.Environment)
		var err error
		if d.settings, err = settings.Read(c, defaults); err != nil {
			return nil, err
		}
		live, err := observe(c)
		if err != nil {
			return nil, err
		}
		if err := validate(&d.spec, live); err != nil {
			return nil, err
		}
		if d.storage, err = storage(&d.spec, d.profile, live); err != nil {
			return nil, err
		}
		if d.secrets, err = drawSecrets(c, live); err != nil {
			return nil, err
		}
		return d.plan(live), nil
	}
}

// plan lists the components of a claim.
func (d *cluster) plan(l *live) *compose.Plan {
	p := &compose.Plan{}
	add := func(comp compose.Component) { p.Components = append(p.Components, comp) }

	// The credentials outlive a mistake: without them the data is locked.
	add(compose.Component{Name: credentials, Object: d.credentials(), HoldsData: true})
	add(compose.Component{Name: config, Part: postgresql, Object: d.configMap()})
	add(compose.Component{Name: account, Part: postgresql, Object: build.ServiceAccount(d.Scope, postgresql, appName)})
	add(compose.Component{Name: role, Part: postgresql, Object: d.role()})
	add(compose.Component{Name: roleBinding, Part: postgresql, Object: d.roleBinding()})
	add(compose.Component{Name: state, Part: postgresql, Object: d.patroniState("config"), Health: hasPrimary})
	add(compose.Component{Name: failover, Part: postgresql, Object: d.patroniState("failover")})
	add(compose.Component{Name: syncState, Part: postgresql, Object: d.patroniState("sync")})
	add(compose.Component{Name: headless, Part: postgresql, Object: d.headlessService()})
	add(compose.Component{Name: policy, Part: postgresql, Object: d.networkPolicy()})
	if d.profile.HighlyAvailable {
		add(compose.Component{Name: budget, Part: postgresql, Object: build.DisruptionBudget(d.Scope, postgresql, appName)})
	}
	// What the pods mount is applied in the same pass: to wait until it is
	// stored would cost a pass, and the kubelet waits for it anyway.
	add(compose.Component{Name: postgresql, Object: d.statefulSet(l.set.Spec.VolumeClaimTemplates), HoldsData: true})
	add(compose.Component{Name: primary, Part: connection, Object: d.service(primary)})
	if d.spec.Size > 1 {
		add(compose.Component{Name: replica, Part: connection, Object: d.service(replica)})
	}
	add(compose.Component{Name: connection, Object: d.connection()})

	p.Status = func(o compose.Outcome) any { return d.status(o, l) }
	p.Conditions = func(o compose.Outcome) []compose.Condition { return d.conditions(o) }
	return p
}

// Endpoint of the primary of a DatabaseCluster.
func Endpoint(name, namespace string) string { return hostPort(name, primary, namespace) }

// ConnectionSecret of a DatabaseCluster.
func ConnectionSecret(name string) string { return name + "-" + connection }
