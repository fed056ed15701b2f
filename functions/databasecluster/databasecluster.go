// Package databasecluster turns a DatabaseCluster claim into PostgreSQL servers
// under Patroni. Failover is Patroni's: it happens in the pods and needs
// neither Crossplane nor this function alive. What else has to be done beside
// the servers is the instance managers', who are told by a ConfigMap and answer
// by another one (internal/instance).
package databasecluster

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/functions/databasecluster/postgresql"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
	guardrails "github.com/storeplane/storeplane/internal/policy"
	"github.com/storeplane/storeplane/internal/profile"
	"github.com/storeplane/storeplane/internal/settings"
)

// Names of components.
const (
	credentials = "credentials"
	connection  = "connection"
	authority   = "ca"
	certificate = "tls"
	account     = "account"
	role        = "role"
	roleBinding = "rolebinding"
	config      = "config"
	instances   = "instances"
	headless    = "headless"
	primary     = "primary"
	replica     = "replica"
	policy      = "networkpolicy"
	budget      = "disruptionbudget"
	protection  = "protection"
	podMonitor  = "podmonitor"
)

// userComponent is the component of a user's Secret, and the end of its name.
func userComponent(name appsv1.Identifier) string {
	return "user-" + strings.ReplaceAll(string(name), "_", "-")
}

// instancePort is the instance manager's.
const instancePort = 8009

// cluster is what the builders know of a claim.
type cluster struct {
	build.Scope

	// engine of the claim, and server its name: the component of the servers.
	engine  engine.Engine
	traits  engine.Traits
	release engine.Release
	server  string

	// facts are what the engine knows of the claim.
	facts *engine.Cluster

	configuration engine.Configuration

	spec     appsv1.DatabaseClusterSpec
	profile  *profile.Profile
	settings settings.Settings
	live     *live
	storage  string
	secrets  secrets
	tls      tlsFiles
	backup   backing
	origin   *origin
	files    map[string]string

	// leadWith is the annotation that names a volume to lead with, or "".
	leadWith string

	// desired is what the instance managers are told, as JSON.
	desired string

	// scraped tells that there is somebody to read a PodMonitor.
	scraped bool
}

// engineOf a claim. Check refuses those that there are not.
func engineOf(*appsv1.DatabaseClusterSpec) engine.Engine { return postgresql.Engine{} }

func (d *cluster) synchronous() bool {
	if d.spec.Synchronous != nil {
		return *d.spec.Synchronous
	}
	return d.profile.Synchronous && d.spec.Size > 1
}

// strict tells whether writes stop while no standby acknowledges them.
func (d *cluster) strict() bool { return d.synchronous() && d.spec.SynchronousMode == appsv1.Strict }

// Intent of a DatabaseCluster.
func Intent(defaults settings.Settings) compose.Intent {
	return func(c *compose.Claim) (*compose.Plan, error) {
		d := &cluster{Scope: build.ScopeOf(c), leadWith: c.Annotation(instance.LeadWithAnnotation)}
		err := c.Spec(&d.spec)
		d.engine = engineOf(&d.spec)
		d.traits = d.engine.Traits()
		d.server = d.traits.Name
		if err == nil {
			err = d.resolve(c, defaults)
		}
		p := &compose.Plan{}
		switch {
		case err == nil:
			p = d.plan()
		case !compose.IsInvalid(err):
			return nil, err
		}
		p.Maintain = func() (map[string]*structpb.Struct, error) { return d.maintenance(c) }
		return p, err
	}
}

// resolve reads all that the builders need to know.
func (d *cluster) resolve(c *compose.Claim, defaults settings.Settings) error {
	d.profile = profile.Of(d.spec.Environment)
	var err error
	if d.settings, err = settings.Read(c, defaults); err != nil {
		return err
	}
	if !d.findsLeft(c) {
		// With what is asked for in any case.
		_ = d.requireSecrets(c)
		return compose.ErrPending
	}
	if d.live, err = observe(c, d.Scope, &d.traits); err != nil {
		return err
	}
	if err := validate(&d.spec, d.live); err != nil {
		return err
	}
	if err := guardrails.Enforce(guardrails.DatabaseCluster(&d.spec), d.settings.Policy); err != nil {
		return err
	}
	d.release = d.engine.Release(d.spec.Version)
	if d.storage, err = storage(&d.spec, d.profile, d.live); err != nil {
		return err
	}
	// All ask for what they need at once: Crossplane gives up on a function
	// that asks for more each time it is called.
	var pending error
	for _, read := range []func(*compose.Claim) error{d.requireSecrets, d.readBackup, d.readRestore} {
		switch err := read(c); {
		case errors.Is(err, compose.ErrPending):
			pending = err
		case err != nil:
			return err
		}
	}
	if pending != nil {
		return pending
	}
	if d.secrets, err = drawSecrets(c, d.traits.Passwords, &d.spec); err != nil {
		return err
	}
	if d.tls, err = d.drawTLS(c); err != nil {
		return err
	}
	d.tls.peers = peersOf(d.tls.authority.Certificate, datum(c.Observed(config), engine.FilePeers))
	d.facts = d.factsOf()
	d.configuration = d.engine.Configuration(d.facts)
	if d.files, err = d.backupFiles(); err != nil {
		return err
	}
	if d.desired, err = d.desiredJSON(); err != nil {
		return err
	}
	d.scraped = d.monitored() && c.HasKind(podMonitorSchema, podMonitor)
	d.live.settled = d.live.cluster.Applied == instance.Digest(d.desired) && (c.IsReview() || d.secrets.observedIn(c.Observed(credentials)))
	return nil
}

// factsOf a claim whose secrets, certificates and backups are known.
func (d *cluster) factsOf() *engine.Cluster {
	return &engine.Cluster{
		Scope: d.Scope, Spec: &d.spec, Image: d.image(),
		Synchronous: d.synchronous(), Strict: d.strict(),
		TLSRequired: d.tlsRequired(), Authority: d.tls.authority.Certificate,
		BackedUp: d.backup.enabled, Archive: d.live.cluster.Stanza,
		Passwords: d.secrets.own, Users: d.secrets.users,
	}
}

// image of the servers.
func (d *cluster) image() string {
	return d.settings.ImageRegistry + "/" + d.server + ":" + d.release.Tag
}

// findsLeft asks for what an earlier claim of this name may have left behind and
// what is valid depends on: a cluster that has data is not restored, and a volume of
// backups that exists is not too small for its claim.
func (d *cluster) findsLeft(c *compose.Claim) bool {
	if c.IsComposed(d.server) {
		return true
	}
	found := true
	for _, o := range []struct{ component, apiVersion, kind, name string }{
		{d.server, "apps/v1", "StatefulSet", d.Name(d.server)},
		{instances, "v1", "ConfigMap", d.Name(d.server) + "-status"},
		{repository, "apps/v1", "StatefulSet", d.Name(repository)},
	} {
		found = c.Existing(o.component, o.apiVersion, o.kind, o.name) && found
	}
	return found
}

// plan lists the components of a claim.
func (d *cluster) plan() *compose.Plan {
	p := &compose.Plan{}
	add := func(comp compose.Component) { p.Components = append(p.Components, comp) }

	// The credentials outlive a mistake: without them the data is locked.
	add(compose.Component{Name: credentials, Object: d.credentials(), HoldsData: true})
	if d.ownAuthority() {
		add(compose.Component{Name: authority, Part: credentials, Object: d.authority()})
		add(compose.Component{Name: certificate, Part: credentials, Object: d.certificate()})
	}
	add(compose.Component{Name: config, Part: d.server, Object: d.configMap()})
	add(compose.Component{Name: account, Part: d.server, Object: build.ServiceAccount(d.Scope, d.server, d.server)})
	add(compose.Component{Name: role, Part: d.server, Object: d.role()})
	// Crossplane applies in no order, and a binding to a role that does not exist
	// yet is refused to whoever may not bind all.
	add(compose.Component{Name: roleBinding, Part: d.server, Object: d.roleBinding(), After: []string{role}})
	for _, component := range d.engine.Objects(d.facts) {
		add(component)
	}
	add(compose.Component{Name: instances, Part: d.server, Object: d.instances(), Health: d.judgeInstances})
	add(compose.Component{Name: headless, Part: d.server, Object: d.headlessService()})
	add(compose.Component{Name: policy, Part: d.server, Object: d.networkPolicy()})
	if d.profile.HighlyAvailable {
		add(compose.Component{Name: budget, Part: d.server, Object: build.DisruptionBudget(d.Scope, d.server, d.server)})
	}
	// What the pods mount is applied in the same pass: to wait until it is
	// stored would cost a pass, and the kubelet waits for it anyway.
	add(compose.Component{Name: d.server, Object: d.statefulSet(), HoldsData: true, Health: d.judgeServers})
	add(compose.Component{Name: primary, Part: connection, Object: d.service(primary)})
	if d.spec.Size > 1 {
		add(compose.Component{Name: replica, Part: connection, Object: d.service(replica)})
	}
	add(compose.Component{Name: connection, Object: d.connection(engine.AppUser, connection)})
	for _, u := range d.spec.Users {
		add(compose.Component{Name: userComponent(u.Name), Part: connection, Object: d.connection(string(u.Name), userComponent(u.Name))})
	}
	d.addBackups(add)
	if d.scraped {
		add(compose.Component{Name: podMonitor, Part: d.server, Object: d.podMonitor()})
	}
	if d.protected() {
		add(compose.Component{Name: protection, Object: build.Protection(d.Named(d.Name("dbc-protection"), protection, d.server), d.Claim, appsv1.GroupVersion.String(), appsv1.DatabaseClusterKind)})
	}

	p.Status = func(o compose.Outcome) any { return d.status(o) }
	p.Conditions = func(compose.Outcome) []compose.Condition { return d.conditions() }
	return p
}

// protected tells whether the claim's deletion is refused.
func (d *cluster) protected() bool {
	if d.spec.DeletionProtection != nil {
		return *d.spec.DeletionProtection
	}
	return d.profile.DeletionProtection
}

// Endpoint of the primary of a DatabaseCluster.
func Endpoint(spec *appsv1.DatabaseClusterSpec, name, namespace string) string {
	return hostPort(engineOf(spec).Traits().Port, name, primary, namespace)
}

// ConnectionSecret of a DatabaseCluster.
func ConnectionSecret(name string) string { return name + "-" + connection }
