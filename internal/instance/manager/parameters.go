package manager

import (
	"context"
	"maps"
	"slices"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// parameters are checked once a change.
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
		if !m.note("check the parameters", err) {
			return
		}
	}
	c.known, c.of, c.problems = true, of, problems
}

// hold says whether servers should not be restarted for parameters: Patroni
// drops what it knows to be wrong, but not a library that is missing, and a
// server does not start without it. The problem says so already.
func (c *parameters) hold() bool {
	return slices.ContainsFunc(c.problems, func(p instance.Problem) bool { return p.Name == postgres.Libraries })
}
