//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

func (d *database) hasTLS(ctx context.Context, n notes) error {
	l, err := d.login(connection, "app")
	if err != nil {
		return err
	}
	if l.CA, err = d.secret(connection, "ca.crt"); err != nil {
		return err
	}
	l.Settings["sslmode"] = "verify-full"
	replicas, err := d.secret(connection, "ro-host")
	if err != nil {
		return err
	}
	// The certificate has to contain each name by which a server is reached.
	names := []string{l.Settings["host"], replicas, primaryName, primaryName + "." + d.namespace}
	for _, p := range d.pods() {
		names = append(names, p.GetName()+"."+setName+"."+d.namespace+".svc")
	}
	var errs []error
	var version string
	for _, name := range names {
		l.Settings = with(l.Settings, "host", name)
		version, err = d.client.SQL(ctx, l, "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
		if err != nil {
			errs = append(errs, fmt.Errorf("verify-full of %s: %w", name, err))
		}
	}
	n.Addf("%d names verified, %s", len(names), version)
	errs = append(errs, d.refusesStrangers(ctx, l), d.uriWorks(ctx))
	return errors.Join(errs...)
}

// refusesStrangers checks that the verification can fail, and that no client connects without TLS.
func (d *database) refusesStrangers(ctx context.Context, l harness.Login) error {
	address := harness.Field(d.primary(), "status", "podIP")
	l.Settings = with(l.Settings, "host", address)
	if err := refuses(ctx, d.client, l, "does not match host name"); err != nil {
		return fmt.Errorf("verify-full of %s, which is no name: %w", address, err)
	}
	host, err := d.secret(connection, "host")
	if err != nil {
		return err
	}
	other := cluster.Config.CAData
	l.Settings, l.CA = with(l.Settings, "host", host), string(other)
	if len(other) > 0 {
		if err := refuses(ctx, d.client, l, "certificate verify failed"); err != nil {
			return fmt.Errorf("verify-full with another CA: %w", err)
		}
	}
	l.Settings, l.CA = with(l.Settings, "sslmode", "disable"), ""
	if err := refuses(ctx, d.client, l, "no encryption"); err != nil {
		return fmt.Errorf("sslmode=disable: %w", err)
	}
	return nil
}

// uriWorks checks that the uri in the Secret works unchanged and requires TLS.
func (d *database) uriWorks(ctx context.Context) error {
	uri, err := d.secret(connection, "uri")
	if err != nil {
		return err
	}
	if !strings.Contains(uri, "sslmode=require") {
		return errors.New("the Secret's uri does not ask for sslmode=require")
	}
	have, err := d.client.SQL(ctx, harness.Login{URI: uri, Settings: map[string]string{}}, "SELECT pg_is_in_recovery()")
	if err != nil || have != "False" {
		return errors.Join(err, fmt.Errorf("the Secret's uri does not lead to the primary: %q", have))
	}
	return nil
}
