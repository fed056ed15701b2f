package manager

import (
	"context"
	"maps"
	"slices"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// parameters are the claim's parameters and their problems. They are checked once per change.
type parameters struct {
	known    bool
	of       map[string]string
	problems []instance.Problem
}

func (c *parameters) check(ctx context.Context, m *Manager, of map[string]string) {
	if c.known && maps.Equal(c.of, of) {
		return
	}
	var problems []instance.Problem
	if len(of) > 0 {
		programs, err := m.server.Programs(ctx)
		if err == nil {
			problems, err = postgres.CheckParameters(ctx, programs, of)
		}
		if !m.Note("check the parameters", err) {
			return
		}
	}
	c.known, c.of, c.problems = true, of, problems
}

// hold reports whether servers must not be restarted for parameters. Patroni drops values that
// it knows to be wrong, but does not notice a missing library, without which a server does not
// start. The problem is reported already.
func (c *parameters) hold() bool {
	return slices.ContainsFunc(c.problems, func(p instance.Problem) bool { return p.Name == postgres.Libraries })
}
