//go:build e2e

package backup

import (
	"context"
	"errors"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// bait is a table whose constraint runs a program wherever it is restored by a
// superuser, and keeps what that sees: its user, and the folders of Secrets and tokens.
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

// nothingSeen but the user that the program ran as.
const nothingSeen = "SELECT count(*) = 1 AND bool_and(line ~ '^[0-9]+$') FROM bait.seen"

// findsNothing: a program that a database holds runs as a superuser while its backup is
// verified, and finds neither the store's credentials nor a token.
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
