package manager

import (
	"context"
	"slices"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// bring reconciles roles, then the databases that they own.
func (p *primary) bring(ctx context.Context, desired *instance.Desired, passwords map[string][]byte) ([]instance.Problem, error) {
	if err := p.server.Monitoring(ctx); err != nil {
		return nil, err
	}
	roles, err := p.server.Roles(ctx, logins(desired, passwords))
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
