//go:build e2e

package backup

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// engine is a type of database, of which one server is backed up and another one is restored into.
type engine struct {
	name backupv1.Engine

	// rows is the number of rows of the largest table.
	rows string
}

// engines are the engines, each of which is backed up to each store. FerretDB is slow, and its
// checks do not depend on the amount of data.
var engines = []engine{
	{backupv1.PostgreSQL, "120000"},
	{backupv1.MySQL, "120000"},
	{backupv1.MongoDB, "5000"},
}

// password is the password of the servers that the tests run themselves. It contains characters
// that are special in a URI, a shell or a settings file.
const password = `p4 ss%w0rd#"x`

func (e engine) source() string { return string(e.name) + "-source" }
func (e engine) target() string { return string(e.name) + "-target" }

// volume returns the name of the volume for backups of the engine. It is one for each, because the
// images run as different users.
func (e engine) volume() string { return "backups-" + string(e.name) }

// database returns a server as a Backup or Restore refers to it.
func (e engine) database(server string) backupv1.Database {
	d := backupv1.Database{Type: e.name}
	switch {
	case e.name == backupv1.PostgreSQL && server == e.source():
		d.Connection.DatabaseClusterRef = &backupv1.LocalReference{Name: server}
	case e.name == backupv1.PostgreSQL:
		d.Connection.SecretRef = &backupv1.ConnectionSecret{Name: server + "-connection"}
	default:
		d.Connection.SecretRef = &backupv1.ConnectionSecret{Name: server}
	}
	return d
}

// server starts a server, once, and waits until it accepts connections.
func (g *ground) server(ctx context.Context, e engine, name string) error {
	return g.once.Do("server "+name, func() error {
		switch e.name {
		case backupv1.PostgreSQL:
			if err := g.create(ctx, "backup/postgresql.yaml", map[string]string{"NAME": name}); err != nil {
				return err
			}
			return g.world.AwaitReady(ctx, started, "DatabaseCluster", name)
		case backupv1.MySQL:
			// The Secret holds the parts of the connection, and no URI.
			if err := g.secret(ctx, name, map[string]string{"username": "shop", "password": password, "host": name, "port": "3306", "dbname": "shop"}); err != nil {
				return err
			}
			return g.serve(ctx, "backup/mysql.yaml", name, "3306")
		case backupv1.MongoDB:
			if err := g.secret(ctx, name, map[string]string{"password": password, "uri": g.uri(e, name)}); err != nil {
				return err
			}
			return g.serve(ctx, "backup/mongodb.yaml", name, "27017")
		}
		return fmt.Errorf("cannot start a server of %s", e.name)
	})
}

// uri returns the URI by which the pod with the command data connects to a server.
func (g *ground) uri(e engine, server string) string {
	escaped := strings.NewReplacer("%", "%25", " ", "%20", "#", "%23", `"`, "%22").Replace(password)
	switch e.name {
	case backupv1.PostgreSQL:
		raw, _ := base64.StdEncoding.DecodeString(harness.Field(g.world.Get("Secret", server+"-connection"), "data", "uri"))
		// The pod has no certificate to verify the server's with.
		return strings.NewReplacer("sslmode=verify-full", "sslmode=require", "sslmode=verify-ca", "sslmode=require").Replace(string(raw))
	case backupv1.MySQL:
		return "mysql://shop:" + escaped + "@" + server + ":3306/shop"
	case backupv1.MongoDB:
		return "mongodb://shop:" + escaped + "@" + server + ":27017/shop"
	}
	return ""
}

// loaded starts the source and fills it with data, once.
func (g *ground) loaded(ctx context.Context, e engine) error {
	if err := g.server(ctx, e, e.source()); err != nil {
		return err
	}
	return g.once.Do("data of "+e.source(), func() error {
		if _, err := g.data(ctx, g.uri(e, e.source()), "load", string(e.name), "--rows", e.rows, "--bulk", g.bulk); err != nil {
			return err
		}
		var err error
		g.sums[e.source()], err = g.sum(ctx, e, e.source())
		return err
	})
}

// sum returns a checksum of each table of a server, one in a line.
func (g *ground) sum(ctx context.Context, e engine, server string) (string, error) {
	return g.data(ctx, g.uri(e, server), "sums", string(e.name))
}

// emptyPostgreSQL empties a database as its owner, who may not drop the database itself.
const emptyPostgreSQL = `DO $$ DECLARE s text; BEGIN
  FOR s IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', s);
  END LOOP;
  CREATE SCHEMA public;
  PERFORM lo_unlink(oid) FROM pg_largeobject_metadata;
END $$`

// emptied starts the target, once, and empties it.
func (g *ground) emptied(ctx context.Context, e engine) error {
	if err := g.server(ctx, e, e.target()); err != nil {
		return err
	}
	args := []string{"drop", string(e.name), "shop"}
	if e.name == backupv1.PostgreSQL {
		args = []string{"exec", string(e.name), emptyPostgreSQL}
	}
	_, err := g.data(ctx, g.uri(e, e.target()), args...)
	return err
}

// same checks that the target has the same rows as the source.
func (g *ground) same(ctx context.Context, e engine) error {
	have, err := g.sum(ctx, e, e.target())
	if err != nil {
		return err
	}
	return difference(g.sums[e.source()], have)
}

// difference returns an error that lists the differences between two databases.
func difference(want, have string) error {
	if want == "" {
		return errors.New("there is nothing to compare with")
	}
	if want == have {
		return nil
	}
	lines := func(s string) map[string]string {
		out := map[string]string{}
		for line := range strings.Lines(s) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
			out[name] = rest
		}
		return out
	}
	wanted, had := lines(want), lines(have)
	var errs []error
	for name, w := range wanted {
		if h, ok := had[name]; !ok {
			errs = append(errs, fmt.Errorf("%s is missing", name))
		} else if h != w {
			errs = append(errs, fmt.Errorf("%s differs: %q, not %q", name, h, w))
		}
	}
	for name := range had {
		if _, ok := wanted[name]; !ok {
			errs = append(errs, fmt.Errorf("%s should not be there", name))
		}
	}
	return errors.Join(errs...)
}
