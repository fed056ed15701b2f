//go:build e2e

package postgresql

import (
	"context"
	"strings"
)

// switchover makes a server primary by patronictl in the pod of the primary, as the documentation
// describes. Patroni refuses while the candidate is not yet a synchronous standby, so it is
// retried.
func (d *database) switchover(ctx context.Context, candidate string) error {
	answer := ""
	return d.world.Await(ctx, soon, candidate+" to be primary", func() (bool, string) {
		p := d.primary()
		switch {
		case p == nil:
			return false, "not exactly one pod is"
		case p.GetName() == candidate:
			return true, ""
		}
		scope := p.GetName()[:strings.LastIndexByte(p.GetName(), '-')]
		said, err := cluster.Exec(ctx, d.namespace, p.GetName(), container, nil,
			"patronictl", "-c", "/etc/patroni", "switchover", scope, "--leader", p.GetName(), "--candidate", candidate, "--force")
		answer = said
		if err != nil {
			answer = err.Error()
		}
		return false, "it is " + p.GetName() + "; Patroni's answer: " + answer
	})
}
