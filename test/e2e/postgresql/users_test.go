//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	reporting       = "reporting"
	reports         = "reports"
	reportingSecret = claimName + "-user-" + reporting
)

// hasUsers adds a user and a database, changes the user's password, and removes both from the
// claim.
func (d *database) hasUsers(ctx context.Context, n notes) error {
	start := time.Now()
	err := d.change(ctx, harness.Patch{
		"users":     []any{harness.Patch{"name": reporting}},
		"databases": []any{harness.Patch{"name": reports, "owner": reporting, "extensions": []any{"pg_trgm"}}},
	})
	if err != nil {
		return err
	}
	if err := d.says(ctx, settled, "DatabasesReady True"); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	n.Addf("there after %.1fs", time.Since(start).Seconds())
	first, err := d.login(reportingSecret, reports)
	if err != nil {
		return err
	}
	if err := d.ownsReports(ctx, first); err != nil {
		return err
	}
	second, err := d.rotates(ctx, n, first)
	if err != nil {
		return err
	}
	return d.removesUser(ctx, second)
}

func (d *database) ownsReports(ctx context.Context, l harness.Login) error {
	for _, c := range []struct{ statement, want string }{
		{"SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()", reporting},
		{"SELECT extname FROM pg_extension WHERE extname = 'pg_trgm'", "pg_trgm"},
		{"CREATE TABLE IF NOT EXISTS sales (id int PRIMARY KEY)", ""},
		{"INSERT INTO sales VALUES (1) ON CONFLICT DO NOTHING", ""},
	} {
		have, err := d.client.SQL(ctx, l, c.statement)
		if err != nil {
			return fmt.Errorf("%s: %w", c.statement, err)
		}
		if have != c.want {
			return fmt.Errorf("%s: %q, not %q", c.statement, have, c.want)
		}
	}
	l.Settings = with(l.Settings, "dbname", "app")
	if _, err := d.client.SQL(ctx, l, "SELECT 1"); err == nil {
		return errors.New("user " + reporting + " may connect to database app")
	}
	return nil
}

func with(settings map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range settings {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// rotatesWithin is the time that users are promised.
const rotatesWithin = time.Minute

// rotates changes a password by deleting it from the Secret, and returns the new login.
func (d *database) rotates(ctx context.Context, n notes, old harness.Login) (harness.Login, error) {
	start := time.Now()
	// The password is removed from the Secret itself, not by a change of the claim.
	if _, err := cluster.Patch(ctx, "Secret", d.namespace, reportingSecret, harness.Patch{"data": harness.Patch{"password": nil}}); err != nil {
		return old, err
	}
	fresh := old
	err := d.world.Await(ctx, rotatesWithin, "another password", func() (bool, string) {
		l, err := d.login(reportingSecret, reports)
		fresh = l
		return err == nil && l.Settings["password"] != old.Settings["password"], fmt.Sprint(err)
	})
	if err != nil {
		return old, err
	}
	err = harness.Await(ctx, rotatesWithin-time.Since(start), "the new password to be taken", func(ctx context.Context) (bool, error) {
		_, err := d.client.SQL(ctx, fresh, "SELECT 1")
		return err == nil, err
	})
	if err != nil {
		return old, err
	}
	n.Addf("rotated after %.1fs", time.Since(start).Seconds())
	return fresh, refuses(ctx, d.client, old, "password authentication failed")
}

// refuses checks that a login is refused with these words of the server.
func refuses(ctx context.Context, c *harness.Client, l harness.Login, want string) error {
	_, err := c.SQL(ctx, l, "SELECT 1")
	switch {
	case err == nil:
		return fmt.Errorf("a login was let in that should not be: want %q", want)
	case !strings.Contains(err.Error(), want):
		return fmt.Errorf("a login was not refused with %q: %w", want, err)
	default:
		return nil
	}
}

func (d *database) removesUser(ctx context.Context, l harness.Login) error {
	if err := d.change(ctx, harness.Patch{"users": nil, "databases": nil}); err != nil {
		return err
	}
	err := harness.Await(ctx, rotatesWithin, "the removed user to be refused", func(ctx context.Context) (bool, error) {
		err := refuses(ctx, d.client, l, "is not permitted to log in")
		return err == nil, err
	})
	if err != nil {
		return err
	}
	have, err := d.ask(ctx, reports, "SELECT count(*) FROM sales")
	if err != nil || have != "1" {
		return errors.Join(err, fmt.Errorf("the removed user's database has %q rows, not 1", have))
	}
	return nil
}
