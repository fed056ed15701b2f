package manager

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// applyPeriod is how often databases and users are reconciled although nothing has changed: a
// user may have altered them in the database.
const applyPeriod = time.Minute

// applied is what databases and users were last reconciled with, and the result.
type applied struct {
	digest, credentials string
	problems            []instance.Problem

	at   time.Time
	done bool
}

var errNoCredentials = errors.New("there are none")

// apply reconciles databases, users and passwords when any of them has changed, when the last
// attempt failed, and once each applyPeriod. It reports whether they are in sync.
func (p *primary) apply(ctx context.Context, raw string, desired *instance.Desired) bool {
	secret, err := p.credentials(ctx, desired)
	if !p.note("read the credentials", err) || secret == nil {
		return false
	}
	digest := instance.Digest(raw)
	a := &p.applied
	same := a.done && a.digest == digest && a.credentials == secret.ResourceVersion
	if same && time.Since(a.at) < applyPeriod {
		return true
	}
	problems, err := p.bring(ctx, desired, secret)
	if !p.note("reconcile databases and users", err) {
		return false
	}
	p.applied = applied{digest: digest, credentials: secret.ResourceVersion, problems: problems, at: time.Now(), done: true}
	return true
}

// credentials returns the Secret credentials, or nil before it has been read. It is watched
// from the first call on, not before: its name contains the claim's, which is part of what is
// desired.
func (p *primary) credentials(ctx context.Context, desired *instance.Desired) (*corev1.Secret, error) {
	if p.secret == nil {
		w, err := p.watcher(p.wakePrimary.send).Secret(instance.CredentialsName(desired.Claim))
		if err != nil {
			return nil, err
		}
		p.secret = w
		go w.Run(ctx)
	}
	secret := p.secret.One()
	if secret == nil && p.secret.Synced() {
		return nil, errNoCredentials
	}
	return secret, nil
}

// bring reconciles roles, then the databases that they own.
func (p *primary) bring(ctx context.Context, desired *instance.Desired, secret *corev1.Secret) ([]instance.Problem, error) {
	if err := p.server.Monitoring(ctx); err != nil {
		return nil, err
	}
	roles, err := p.server.Roles(ctx, logins(desired, secret.Data))
	if err != nil {
		return nil, err
	}
	databases, err := p.server.Databases(ctx, desired.Databases, desired.Users)
	return slices.Concat(roles, databases), err
}

// logins returns the servers' own roles and the users, with their passwords.
func logins(desired *instance.Desired, passwords map[string][]byte) []postgres.Login {
	list := []postgres.Login{
		{Name: postgres.Superuser, Password: string(passwords[instance.KeySuperuser]), System: true},
		{Name: instance.UserReplication, Password: string(passwords[instance.KeyReplication]), System: true},
		{Name: instance.UserRewind, Password: string(passwords[instance.KeyRewind]), System: true},
	}
	for _, u := range desired.Users {
		list = append(list, postgres.Login{Name: u, Password: string(passwords[instance.PasswordKey(u)])})
	}
	return list
}
