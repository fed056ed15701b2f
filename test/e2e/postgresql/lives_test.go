//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/types"
)

// brief returns a database for development with one server, which exists only for a short time.
func brief(version string) *database {
	return &database{namespace: "e2e-postgresql-development-" + version, manifest: "postgresql/development.yaml"}
}

func development() types.Feature {
	d := brief("17")
	return tests.Feature("a database in development", d.namespace).
		Full("deleted in development it leaves nothing, and its name is free", d.livesTwice).
		Full("deleted and claimed again at once it starts, many times", d.livesAtOnce).
		Full("a server that never saw the last timeline does not lead", d.missesTimeline).
		Feature()
}

// major returns a check of a major version that the other checks do not use.
func major(version string) types.Feature {
	d := brief(version)
	return tests.Feature("PostgreSQL "+version, d.namespace).
		Full("PostgreSQL "+version+" is created, written, read and deleted", func(ctx context.Context, n notes) error {
			return d.lives(ctx, n, version)
		}).
		Feature()
}

// lives creates a database, writes, reads, and deletes it. It must begin without data of an earlier
// one.
func (d *database) lives(ctx context.Context, n notes, major string) error {
	start := time.Now()
	if err := d.begins(ctx, major); err != nil {
		return err
	}
	n.Addf("Ready after %.1fs", time.Since(start).Seconds())
	have, err := d.ask(ctx, "app", "SHOW server_version")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(have, major) {
		return fmt.Errorf("the server is of version %s, not %s", have, major)
	}
	n.Addf("version %s", strings.Fields(have)[0])
	l, err := d.login(connection, "app")
	if err != nil {
		return err
	}
	for _, s := range []struct{ statement, want string }{
		{"SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "0"},
		{"CREATE TABLE lives (major text)", ""},
		{"INSERT INTO lives VALUES ('" + major + "')", ""},
		{"SELECT major FROM lives", major},
	} {
		if have, err := d.client.SQL(ctx, l, s.statement); err != nil || have != s.want {
			return errors.Join(err, fmt.Errorf("%s: %q, not %q", s.statement, have, s.want))
		}
	}
	took, err := d.end(ctx)
	n.Addf("gone after %.1fs", took.Seconds())
	return err
}

// livesAtOnce deletes the claim and applies it again at once, many times. The servers of the
// deleted one may still write that the database is initialized into the state of the new one, if
// that exists already.
func (d *database) livesAtOnce(ctx context.Context, n notes) error {
	const lives = 8
	if err := d.begins(ctx, "17"); err != nil {
		return err
	}
	longest := time.Duration(0)
	for range lives {
		if _, err := d.ask(ctx, "app", "CREATE TABLE once (life int)"); err != nil {
			return fmt.Errorf("a life has what one before it left: %w", err)
		}
		if err := cluster.Delete(ctx, "DatabaseCluster", d.namespace, claimName); err != nil {
			return err
		}
		if err := d.world.AwaitGone(ctx, settled, "DatabaseCluster", claimName); err != nil {
			return err
		}
		start := time.Now()
		if err := d.file(ctx, map[string]string{"VERSION": "17"}); err != nil {
			return err
		}
		if err := d.whole(ctx, 1); err != nil {
			return err
		}
		longest = max(longest, time.Since(start))
	}
	n.Addf("%d lives, Ready again after %.1fs at most", lives, longest.Seconds())
	_, err := d.end(ctx)
	return err
}

// begins applies the claim and waits until it is healthy. The namespace may exist from an earlier
// call.
func (d *database) begins(ctx context.Context, version string) error {
	values := map[string]string{"VERSION": version}
	var err error
	if d.world == nil {
		err = d.claim(ctx, values)
	} else {
		err = d.file(ctx, values)
	}
	if err != nil {
		return err
	}
	if err := d.whole(ctx, 1); err != nil {
		return err
	}
	return d.hasClient(ctx)
}

// livesTwice runs lives twice under one name: the second database has nothing of the first.
func (d *database) livesTwice(ctx context.Context, n notes) error {
	for range 2 {
		if err := d.lives(ctx, n, "17"); err != nil {
			return err
		}
	}
	return nil
}
