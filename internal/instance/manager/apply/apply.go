// Package apply decides when the databases and users of a cluster are reconciled, and keeps the
// result until the next time.
package apply

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/exchange"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// period is how often databases and users are reconciled although nothing has changed: a user may
// have altered them in the database.
const period = time.Minute

// Applier reconciles databases and users beside the primary.
type Applier struct {
	*exchange.Exchange

	// Changed is called when the passwords change.
	Changed func()

	// Bring reconciles the users with their passwords, by their keys in the Secret credentials,
	// and the databases. It returns the problems that a user has to solve.
	Bring func(ctx context.Context, desired *instance.Desired, passwords map[string][]byte) ([]instance.Problem, error)

	// Done is true once they were reconciled. Digest and Credentials are what with, and Problems
	// is the result.
	Done                bool
	Digest, Credentials string
	Problems            []instance.Problem

	secret *kube.Watch[corev1.Secret]
	at     time.Time
}

var errNoCredentials = errors.New("there are none")

// Apply reconciles databases, users and passwords when any of them has changed, when the last
// attempt failed, and once each minute. It reports whether they are in sync.
func (a *Applier) Apply(ctx context.Context, raw string, desired *instance.Desired) bool {
	secret, err := a.credentials(ctx, desired)
	if !a.Note("read the credentials", err) || secret == nil {
		return false
	}
	digest := instance.Digest(raw)
	same := a.Done && a.Digest == digest && a.Credentials == secret.ResourceVersion
	if same && time.Since(a.at) < period {
		return true
	}
	problems, err := a.Bring(ctx, desired, secret.Data)
	if !a.Note("reconcile databases and users", err) {
		return false
	}
	a.Done, a.Digest, a.Credentials, a.Problems, a.at = true, digest, secret.ResourceVersion, problems, time.Now()
	return true
}

// credentials returns the Secret credentials, or nil before it has been read. It is watched
// from the first call on, not before: its name contains the claim's, which is part of what is
// desired.
func (a *Applier) credentials(ctx context.Context, desired *instance.Desired) (*corev1.Secret, error) {
	if a.secret == nil {
		w, err := a.Watcher(a.Changed).Secret(instance.CredentialsName(desired.Claim))
		if err != nil {
			return nil, err
		}
		a.secret = w
		go w.Run(ctx)
	}
	secret := a.secret.One()
	if secret == nil && a.secret.Synced() {
		return nil, errNoCredentials
	}
	return secret, nil
}
