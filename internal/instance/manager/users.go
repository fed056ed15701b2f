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
	roles, err := p.server.Roles(ctx, logins(desired, passwords, p.bootstrapped(ctx)))
	if err != nil {
		return nil, err
	}
	databases, err := p.server.Databases(ctx, desired.Databases, desired.Users)
	return slices.Concat(roles, databases), err
}

// bootstrapped reports whether this server holds the leader lock. Before it has it, Patroni creates
// the servers' own roles in a new database, and fails if they appear meanwhile.
func (p *primary) bootstrapped(ctx context.Context) bool {
	cluster, err := p.patroni.Cluster(ctx)
	return err == nil && cluster.Leader() == p.Pod
}

// rewinds are the functions that pg_rewind executes on the primary
// (https://www.postgresql.org/docs/current/app-pgrewind.html).
var rewinds = []string{
	"pg_ls_dir(text, boolean, boolean)", "pg_stat_file(text, boolean)",
	"pg_read_binary_file(text)", "pg_read_binary_file(text, bigint, bigint, boolean)",
}

// logins returns the servers' own roles and the users, with their passwords. Patroni creates the
// servers' roles right after initdb, and not at all if its pod ended between the two: then no
// replica could connect, so they are created here.
func logins(desired *instance.Desired, passwords map[string][]byte, bootstrapped bool) []postgres.Login {
	list := []postgres.Login{
		{Name: postgres.Superuser, Password: string(passwords[instance.KeySuperuser]), System: true},
		{Name: instance.UserReplication, Password: string(passwords[instance.KeyReplication]), System: true},
		{Name: instance.UserRewind, Password: string(passwords[instance.KeyRewind]), System: true, Executes: rewinds},
	}
	if bootstrapped {
		list[1].Create, list[2].Create = "LOGIN REPLICATION", "LOGIN"
	}
	for _, u := range desired.Users {
		list = append(list, postgres.Login{Name: u, Password: string(passwords[instance.PasswordKey(u)])})
	}
	return list
}
