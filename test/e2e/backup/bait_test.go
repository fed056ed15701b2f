//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// bait is a table with a constraint that runs a program wherever a superuser restores it, and
// records what the program can read: its user, and the folders of Secrets and tokens.
var bait = []string{
	`CREATE SCHEMA bait`,
	`CREATE FUNCTION bait.bite(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
	  IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
	    CREATE TABLE bait.seen (line text);
	    COPY bait.seen FROM PROGRAM 'id -u; ls /etc/storeplane; ls /var/run/secrets; true';
	  END IF;
	  RETURN true;
	END $$`,
	`CREATE TABLE bait.hook (id int CHECK (bait.bite(id)))`,
	`INSERT INTO bait.hook VALUES (1)`,
}

// nothingSeen is a query that is true if the program has read nothing but its user.
const nothingSeen = "SELECT count(*) = 1 AND bool_and(line ~ '^[0-9]+$') FROM bait.seen"

// findsNothing checks that a program in a database, which runs as a superuser while its backup is
// verified, finds neither the store's credentials nor a token.
func (g *ground) findsNothing(ctx context.Context, n notes) (err error) {
	e := engines[0]
	if err := g.ready(ctx); err != nil {
		return err
	}
	if err := g.store(ctx, backupv1.S3); err != nil {
		return err
	}
	if err := g.loaded(ctx, e); err != nil {
		return err
	}
	exec := func(ctx context.Context, sql string) error {
		_, err := g.data(ctx, g.uri(e, e.source()), "exec", string(e.name), sql)
		return err
	}
	defer func() { err = errors.Join(err, exec(context.WithoutCancel(ctx), "DROP SCHEMA IF EXISTS bait CASCADE")) }()
	for _, sql := range bait {
		if err := exec(ctx, sql); err != nil {
			return err
		}
	}
	const name = "bait"
	asks := func(p *backupv1.BackupParameters) { p.Verification.Query = nothingSeen }
	if err := g.file(ctx, name, g.parameters(e, backupv1.S3, verified, asks)); err != nil {
		return err
	}
	id, err := g.succeed(ctx, name)
	if err != nil {
		return err
	}
	n.Addf("it ran, and saw its user alone")
	return g.proven(ctx, name, id)
}

// loginBait runs a program wherever the superuser connects to a restored database, and logs what
// the program can read. PostgreSQL has login triggers since version 17.
var loginBait = []string{
	`CREATE FUNCTION bite() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE saw text; BEGIN
	  IF current_user = 'postgres' AND current_setting('archive_mode') = 'off' AND NOT pg_is_in_recovery() THEN
	    CREATE TEMPORARY TABLE seen (line text);
	    COPY seen FROM PROGRAM 'id -u; ls /etc/storeplane; ls /var/run/secrets; true';
	    SELECT string_agg(line, ' ') INTO saw FROM seen;
	    RAISE WARNING 'the program saw: %', saw;
	  END IF;
	END $$`,
	`CREATE EVENT TRIGGER bite ON login EXECUTE FUNCTION bite()`,
}

// itself matches the output of a program that has read nothing but its user.
var itself = regexp.MustCompile(`^[0-9]+$`)

// laysBait creates the trigger in the cluster.
func (d *timed) laysBait(ctx context.Context) error {
	for _, sql := range loginBait {
		if _, err := d.psql(ctx, d.primary(), sql); err != nil {
			return err
		}
	}
	return nil
}

// bitHarmlessly waits until the program has run in a restored database, and checks that it has read
// neither the store's credentials nor a token.
func (d *timed) bitHarmlessly(ctx context.Context) error {
	var saw []string
	err := d.world.Await(ctx, done, "a program of the database to run while its backup is verified", func() (bool, string) {
		logs, err := cluster.Logs(ctx, d.namespace)
		if err != nil {
			return false, err.Error()
		}
		saw = nil
		for _, log := range logs {
			for line := range strings.Lines(log) {
				if _, what, ok := strings.Cut(line, "WARNING:  the program saw: "); ok {
					saw = append(saw, strings.TrimSpace(what))
				}
			}
		}
		return len(saw) > 0, "it has not run"
	})
	if err != nil {
		return err
	}
	for _, what := range saw {
		if !itself.MatchString(what) {
			return fmt.Errorf("a program that a physical backup holds sees more than its user: %s", what)
		}
	}
	return nil
}
