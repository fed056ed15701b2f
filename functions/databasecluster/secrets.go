package databasecluster

import (
	"cmp"
	"fmt"
	"maps"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
)

// keyPassword is the key of a user's password in its Secret.
const keyPassword = "password"

// passwordFromAnnotation is an annotation of a user's Secret with the name of the Secret that its
// password comes from, if the claim brings one.
const passwordFromAnnotation = "storeplane.example.com/password-from"

// secrets are passwords. They are generated once, and read from their Secrets after that. One whose
// key was removed from its Secret is generated again: the instance managers set it over the socket,
// where they need no password.
type secrets struct {
	// own are those of the servers' own users, by their keys.
	own map[string]string

	// users are those of the users that may log in, by name, including the first one.
	users map[string]string
}

func drawSecrets(c *compose.Claim, own []string, spec *appsv1.DatabaseClusterSpec) (secrets, error) {
	s := secrets{own: map[string]string{}, users: map[string]string{}}
	draw := func(component, key string) (string, error) {
		return c.Rotatable(component, key, compose.Source.Password)
	}
	var err error
	for _, k := range own {
		if s.own[k], err = draw(credentials, k); err != nil {
			return secrets{}, err
		}
	}
	if s.users[engine.AppUser], err = draw(connection, keyPassword); err != nil {
		return secrets{}, err
	}
	for _, u := range spec.Users {
		if u.PasswordSecretRef == nil {
			s.users[string(u.Name)], err = draw(userComponent(u.Name), keyPassword)
		} else {
			s.users[string(u.Name)], err = brought(c, u)
		}
		if err != nil {
			return secrets{}, err
		}
	}
	return s, nil
}

// brought returns the password that the claim brings for a user.
func brought(c *compose.Claim, u appsv1.DatabaseUser) (string, error) {
	secret, err := requireSecret(c, passwordRequirement(u.Name), u.PasswordSecretRef.Name)
	if err != nil {
		return "", err
	}
	if c.IsReview() {
		return compose.Placeholder, nil
	}
	v, ok := compose.SecretValue(secret, keyPassword)
	if !ok {
		return "", compose.Invalidf("users: Secret %s, which holds the password of %s, does not exist or has no key %s: create it", u.PasswordSecretRef.Name, u.Name, keyPassword)
	}
	return v, nil
}

// requireSecrets requests all Secrets that the claim names at once: Crossplane gives up on a
// function that requests more on each call.
func (d *inputs) requireSecrets(c *compose.Claim) error {
	var pending error
	ask := func(requirement, name string) {
		if _, err := requireSecret(c, requirement, name); err != nil {
			pending = err
		}
	}
	for _, u := range d.spec.Users {
		if u.PasswordSecretRef != nil {
			ask(passwordRequirement(u.Name), u.PasswordSecretRef.Name)
		}
	}
	if !d.ownAuthority() {
		ask(certificate, d.spec.TLS.SecretName)
	}
	return pending
}

// passwordRequirement returns the name under which a user's Secret is requested.
func passwordRequirement(user appsv1.Identifier) string { return "password-" + string(user) }

// requireSecret returns a Secret of the claim's namespace, or nil if there is none.
func requireSecret(c *compose.Claim, requirement, name string) (*structpb.Struct, error) {
	return requireSecretOf(c, requirement, name, c.Namespace())
}

// requireSecretOf returns a Secret of any namespace, or nil if there is none. It returns ErrPending
// until Crossplane has looked it up.
func requireSecretOf(c *compose.Claim, requirement, name, namespace string) (*structpb.Struct, error) {
	found, fetched := c.Require(requirement, &fnv1.ResourceSelector{
		ApiVersion: "v1", Kind: "Secret", Namespace: &namespace,
		Match: &fnv1.ResourceSelector_MatchName{MatchName: name},
	})
	switch {
	case c.IsReview():
		// A review shows placeholders.
		return nil, nil
	case !fetched:
		return nil, compose.ErrPending
	case len(found) == 0:
		return nil, nil
	}
	return found[0], nil
}

// values returns the passwords by their keys in the Secret that is for the servers alone.
func (s *secrets) values() map[string]string {
	out := maps.Clone(s.own)
	for u, v := range s.users {
		out[instance.PasswordKey(u)] = v
	}
	return out
}

// observedIn reports whether a Secret holds all of these values.
func (s *secrets) observedIn(secret *structpb.Struct) bool {
	for k, want := range s.values() {
		if have, ok := compose.SecretValue(secret, k); !ok || have != want {
			return false
		}
	}
	return true
}

// credentials returns the Secret that is for the servers alone.
func (d *cluster) credentials() *corev1.Secret {
	values := d.secrets.values()
	maps.Copy(values, d.configuration.SecretFiles)
	return build.Secret(d.Meta(credentials, d.server), values)
}

// connection returns the Secret with what an application needs to connect as a user.
func (d *cluster) connection(user, component string) *corev1.Secret {
	return d.connectionTo(engine.Address{User: user, Database: d.databaseOf(user)}, component)
}

// connectionTo returns the Secret with what a client needs to connect to an address of the primary.
func (d *cluster) connectionTo(to engine.Address, component string) *corev1.Secret {
	to.Host, to.Hosts = serviceHost(d.Claim, primary, d.Namespace), d.servers()
	values := d.engine.Connection(d.facts, to)
	if d.spec.Size > 1 {
		values[appsv1.ConnectionReadOnlyHost] = serviceHost(d.Claim, replica, d.Namespace)
	}
	// A user's name can be too long for the value of a label.
	return build.Secret(d.Named(d.Name(component), connection, d.server), values)
}

// userSecret returns the connection Secret of a user of the claim.
func (d *cluster) userSecret(u appsv1.DatabaseUser) *corev1.Secret {
	secret := d.connection(string(u.Name), userComponent(u.Name))
	if u.PasswordSecretRef != nil {
		secret.Annotations = map[string]string{passwordFromAnnotation: u.PasswordSecretRef.Name}
	}
	return secret
}

// servers returns all hosts at which the primary may be: its Service, and each server
// by its own name, since the label by which the Service selects is not moved while the
// API server is unreachable.
func (d *inputs) servers() []string {
	out := []string{serviceHost(d.Claim, primary, d.Namespace)}
	for i := range d.spec.Size {
		out = append(out, d.serverHost(i))
	}
	return out
}

// serverHost returns the host name of a single server.
func (d *inputs) serverHost(ordinal int32) string {
	return fmt.Sprintf("%s.%s.%s.svc", d.podName(ordinal), d.Name(d.server), d.Namespace)
}

// databaseOf returns the database of a user: the only one that it owns, or else app.
func (d *inputs) databaseOf(user string) string {
	owned := ""
	for _, db := range d.spec.Databases {
		if engine.Owner(db) == user && user != engine.AppUser {
			if owned != "" {
				return engine.AppDatabase
			}
			owned = string(db.Name)
		}
	}
	return cmp.Or(owned, engine.AppDatabase)
}

func serviceHost(claim, component, namespace string) string {
	return fmt.Sprintf("%s-%s.%s.svc", claim, component, namespace)
}

func hostPort(port int32, claim, component, namespace string) string {
	return fmt.Sprintf("%s:%d", serviceHost(claim, component, namespace), port)
}
