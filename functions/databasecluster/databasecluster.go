// Package databasecluster turns a DatabaseCluster claim into database servers. What has to be done
// beside the servers is done by the instance managers, which read a ConfigMap and report in another
// one (internal/instance).
//
// A claim is processed in four steps:
//
//   - read returns inputs: the claim, the installation's settings and what is observed, each read
//     once;
//   - resolve makes a cluster of the inputs, or refuses the claim: sizes, images, backups, what is
//     restored, secrets and certificates, the configuration of the engine and of the instance
//     managers. Secrets that the claim names are requested here, all at once. A cluster does not
//     change afterwards;
//   - plan lists its components, each built by a pure method of cluster in the file of its kind;
//   - status and conditions report their state.
//
// A method of inputs cannot read what is resolved later, so the compiler enforces the
// order. For a claim that is refused there are only inputs: maintain.go builds from them
// what has to change even then.
//
// What is specific to an engine is behind engine.Engine, which packages postgresql and mysql
// implement.
package databasecluster

import (
	"errors"
	"maps"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/functions/databasecluster/mysql"
	"github.com/storeplane/storeplane/functions/databasecluster/postgresql"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/profile"
	"github.com/storeplane/storeplane/internal/settings"
)

// Names of components.
const (
	credentials = instance.Credentials
	connection  = "connection"
	authority   = "ca"
	certificate = "tls"
	controlTLS  = "control-tls"
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

// userComponent returns the component of a user's Secret, whose name ends with it.
func userComponent(name appsv1.Identifier) string {
	return "user-" + strings.ReplaceAll(string(name), "_", "-")
}

// inputs are what is read of a claim, once. What is computed from them alone is a method of inputs.
type inputs struct {
	build.Scope

	// engine is that of the claim, and traits are its properties. server is its name, which is also
	// the component of the servers.
	engine engine.Engine
	traits engine.Traits
	server string

	spec     appsv1.DatabaseClusterSpec
	profile  *profile.Profile
	settings settings.Settings
	live     *live

	// leadWith is the value of the annotation that names the volume to lead with, or "".
	leadWith string
}

// cluster is a claim that has been resolved: all that the builders read. It does not change once
// resolve has returned it.
type cluster struct {
	*inputs

	release engine.Release
	storage string
	backup  backing
	origin  *origin
	secrets secrets
	tls     tlsFiles

	// facts are what the engine reads of the claim, and configuration is what it makes of them.
	facts         *engine.Cluster
	configuration engine.Configuration

	// files are what the servers read about their backups.
	files map[string]string

	// desired is what the instance managers read, as JSON. settled is true once they have
	// reconciled it as far as possible, and the stored passwords are the current ones.
	desired string
	settled bool

	// scraped is true if metrics are exported and the cluster has PodMonitors.
	scraped bool
}

// engineOf returns the engine of a claim.
func engineOf(s *appsv1.DatabaseClusterSpec) engine.Engine {
	if s.Engine == appsv1.MySQL {
		return mysql.Engine{}
	}
	return postgresql.Engine{}
}

func (d *inputs) synchronous() bool {
	if d.spec.Synchronous != nil {
		return *d.spec.Synchronous
	}
	return (d.profile.Synchronous || d.traits.Synchronous) && d.spec.Size > 1
}

// strict reports whether writes are blocked while no standby acknowledges them.
func (d *inputs) strict() bool { return d.synchronous() && d.spec.SynchronousMode == appsv1.Strict }

// Intent returns the intent of DatabaseClusters, with defaults for settings that the
// installation does not set.
func Intent(defaults settings.Settings) compose.Intent {
	return func(c *compose.Claim) (*compose.Plan, error) {
		in, err := read(c, defaults)
		var d *cluster
		if err == nil {
			d, err = resolve(c, in)
		}
		var upgrade *compose.Upgrade
		if err == nil {
			upgrade, err = in.settings.Upgrade(in.spec.Environment, in.spec.Maintenance)
		}
		p := &compose.Plan{}
		switch {
		case err == nil:
			p = d.plan()
			if p.Upgrade = upgrade; !d.live.understands() {
				// Instance managers of an older protocol could not read their
				// configuration until the window opens.
				upgrade.Urgent = func(string) bool { return true }
			}
		case !compose.IsInvalid(err):
			return nil, err
		}
		p.Maintain = func() (map[string]*structpb.Struct, error) { return in.maintenance(c) }
		p.Faults = in.faults
		return p, err
	}
}

// read reads the claim, the installation's settings and what is observed. It returns what could be
// read beside an error, for maintenance.
func read(c *compose.Claim, defaults settings.Settings) (*inputs, error) {
	in := &inputs{Scope: build.ScopeOf(c), leadWith: c.Annotation(instance.LeadWithAnnotation)}
	err := c.Spec(&in.spec)
	in.engine = engineOf(&in.spec)
	in.traits = in.engine.Traits()
	in.server = in.traits.Name
	if err != nil {
		return in, err
	}
	in.profile = profile.Of(in.spec.Environment)
	if in.settings, err = settings.Read(c, defaults); err != nil {
		return in, err
	}
	if !in.findsLeft(c) {
		// Secrets that are needed in any case are requested in the same pass.
		_ = in.requireSecrets(c)
		return in, compose.ErrPending
	}
	in.live, err = observe(c, in.Scope, &in.traits)
	return in, err
}

// resolve returns all that the builders need, each step of it from what the steps before returned,
// or an error if the claim cannot work.
func resolve(c *compose.Claim, in *inputs) (*cluster, error) {
	if err := validate(&in.spec, in.live); err != nil {
		return nil, err
	}
	if err := in.checkInstalled(); err != nil {
		return nil, err
	}
	if err := build.CheckPods(&in.spec.PodOptions, c.SpecAt()); err != nil {
		return nil, err
	}
	if err := guardrails.Enforce(guardrails.DatabaseCluster(c.Namespace(), &in.spec), in.settings.Policy); err != nil {
		return nil, err
	}
	d := &cluster{inputs: in, release: in.engine.Release(in.spec.Version)}
	var err error
	if d.storage, err = storage(&in.spec, in.profile, in.live); err != nil {
		return nil, err
	}
	// All steps request what they need at once: Crossplane gives up on a function that
	// requests more on each call.
	var pending error
	for _, step := range []func() error{
		func() error { return in.requireSecrets(c) },
		func() (err error) { d.backup, err = in.backing(c, d.storage); return err },
		func() (err error) { d.origin, err = in.origin(c); return err },
	} {
		switch err := step(); {
		case errors.Is(err, compose.ErrPending):
			pending = err
		case err != nil:
			return nil, err
		}
	}
	if pending != nil {
		return nil, pending
	}
	if d.secrets, err = drawSecrets(c, in.traits.Passwords, &in.spec); err != nil {
		return nil, err
	}
	if d.tls, err = in.drawTLS(c, d.needsRepository()); err != nil {
		return nil, err
	}
	d.facts = d.factsOf()
	d.configuration = in.engine.Configuration(d.facts)
	if d.files, err = d.backupFiles(); err != nil {
		return nil, err
	}
	if d.desired, err = d.desiredJSON(); err != nil {
		return nil, err
	}
	d.scraped = in.monitored() && c.HasKind(build.PodMonitorSchema, podMonitor)
	d.settled = in.live.cluster.Applied == instance.Digest(d.desired) && (c.IsReview() || d.secrets.observedIn(c.Observed(credentials)))
	return d, nil
}

// factsOf returns what the engine reads of a claim whose secrets,
// certificates and backups are known.
func (d *cluster) factsOf() *engine.Cluster {
	memory := d.resources().Limits[corev1.ResourceMemory]
	return &engine.Cluster{
		Scope: d.Scope, Spec: &d.spec, Image: d.image(), Memory: memory.Value(),
		Synchronous: d.synchronous(), Strict: d.strict(),
		TLSRequired: d.tlsRequired(), Authority: d.tls.authority.Certificate, OwnAuthority: d.ownAuthority(),
		Archiving: d.archives(), Archive: d.live.cluster.Stanza,
		Passwords: d.secrets.own, Users: d.logins(),
	}
}

// logins returns the passwords of the users that connect over the network, by name.
func (d *cluster) logins() map[string]string {
	if d.traits.Dumper == "" {
		return d.secrets.users
	}
	out := maps.Clone(d.secrets.users)
	out[d.traits.Dumper] = d.secrets.own[d.traits.DumperPassword]
	return out
}

// image returns the image of the servers.
func (d *cluster) image() string {
	return d.settings.Image(d.server + ":" + d.release.Tag)
}

// findsLeft requests what an earlier claim of this name may have left behind, and reports whether
// it was looked up. What is valid depends on it: a cluster that has data is not restored, a volume
// of backups that exists is not too small for its claim, and backups continue with their key.
func (d *inputs) findsLeft(c *compose.Claim) bool {
	if c.IsComposed(d.server) {
		return true
	}
	found := true
	for _, o := range []struct{ component, apiVersion, kind, name string }{
		{d.server, "apps/v1", "StatefulSet", d.Name(d.server)},
		{instances, "v1", "ConfigMap", instance.StatusName(d.Name(d.server))},
		{repository, "apps/v1", "StatefulSet", d.Name(repository)},
		{backupKey, "v1", "Secret", d.Name(backupKey)},
	} {
		found = c.Existing(o.component, o.apiVersion, o.kind, o.name) && found
	}
	return found
}

// plan lists the components of a claim.
func (d *cluster) plan() *compose.Plan {
	p := &compose.Plan{}
	add := func(comp compose.Component) { p.Components = append(p.Components, comp) }

	// The credentials are kept even if they are no longer declared: without them
	// the data is inaccessible.
	add(compose.Component{Name: credentials, Object: d.credentials(), HoldsData: true})
	if d.ownAuthority() {
		add(compose.Component{Name: authority, Part: credentials, Object: d.authority()})
		add(compose.Component{Name: certificate, Part: credentials, Object: d.certificate()})
	}
	add(compose.Component{Name: controlTLS, Part: credentials, Object: d.controlCertificate()})
	add(compose.Component{Name: config, Part: d.server, Object: d.configMap()})
	add(compose.Component{Name: account, Part: d.server, Object: build.ServiceAccount(d.Scope, d.server, d.server)})
	add(compose.Component{Name: role, Part: d.server, Object: d.role()})
	// Crossplane applies objects in no particular order. It may bind Roles (storeplane-compose), or a
	// binding to one that does not exist yet is refused: then it waits for the Role. To do so in any case
	// would be another generation of the claim.
	add(compose.Component{Name: roleBinding, Part: d.server, Object: d.roleBinding(), RetryAfter: []string{role}})
	for _, component := range d.engine.Objects(d.facts) {
		add(component)
	}
	add(compose.Component{Name: instances, Part: d.server, Object: d.instances(), Health: d.judgeInstances})
	add(compose.Component{Name: headless, Part: d.server, Object: d.headlessService()})
	add(compose.Component{Name: policy, Part: d.server, Object: d.networkPolicy()})
	if d.profile.HighlyAvailable {
		add(compose.Component{Name: budget, Part: d.server, Object: build.DisruptionBudget(d.Scope, d.server, d.server)})
	}
	after := d.addKey(add)
	// What the pods mount is applied in the same pass: to wait until it is stored would cost a
	// pass, and the kubelet waits for it anyway.
	add(compose.Component{Name: d.server, After: after, Object: d.statefulSet(), HoldsData: true, Health: d.judgeServers})
	add(compose.Component{Name: primary, Part: connection, Object: d.service(primary)})
	if d.spec.Size > 1 {
		add(compose.Component{Name: replica, Part: connection, Object: d.service(replica)})
	}
	add(compose.Component{Name: connection, Object: d.connection(engine.AppUser, connection)})
	for _, u := range d.spec.Users {
		add(compose.Component{Name: userComponent(u.Name), Part: connection, Object: d.userSecret(u)})
	}
	if d.traits.Dumper != "" && d.dumpable() {
		add(compose.Component{Name: dumper, Part: connection, Object: d.dumperSecret()})
	}
	d.addBackups(add)
	if d.scraped {
		add(compose.Component{Name: podMonitor, Part: d.server, Object: d.podMonitor()})
	}
	if d.protected() {
		add(compose.Component{Name: protection, Object: build.Protection(d.Named(d.Name("dbc-protection"), protection, d.server), d.Claim, appsv1.GroupVersion.String(), appsv1.DatabaseClusterKind)})
	}

	p.PollInterval = d.pollInterval()
	p.Status = func(o compose.Outcome) any { return d.status(o) }
	p.Conditions = func(compose.Outcome) []compose.Condition { return d.conditions() }
	return p
}

// protected reports whether the deletion of the claim is refused.
func (d *inputs) protected() bool {
	if d.spec.DeletionProtection != nil {
		return *d.spec.DeletionProtection
	}
	return d.profile.DeletionProtection
}

// Endpoint returns the host and port of the primary of a DatabaseCluster.
func Endpoint(spec *appsv1.DatabaseClusterSpec, name, namespace string) string {
	return hostPort(engineOf(spec).Traits().Port, name, primary, namespace)
}

// Authority returns the volume that an application mounts to connect by verified-uri of a
// DatabaseCluster's connection Secret.
func Authority(name string) appsv1.Volume {
	return appsv1.Volume{Name: "database-authority", MountPath: engine.AuthorityDir(name), Secret: &corev1.SecretVolumeSource{
		SecretName: ConnectionSecret(name), Items: []corev1.KeyToPath{{Key: build.KeyAuthority, Path: build.KeyAuthority}},
	}}
}

// ConnectionSecret returns the name of the connection Secret of a DatabaseCluster.
func ConnectionSecret(name string) string { return name + "-" + connection }
