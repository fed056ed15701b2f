//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// verifies: a client that verifies servers connects by each name that the certificate has to contain, and to no server by
// another name or of another authority. The Services lead to the primary and to replicas, and what the Secret has for Java
// connects, too.
func (d *database) verifies(ctx context.Context, n notes) error {
	texts := map[string]string{}
	for _, key := range []string{"host", "ro-host", "verified-uri", "jdbc-uri", "ca.crt"} {
		text, err := d.value(connection, key)
		if err != nil {
			return err
		}
		texts[key] = text
	}
	by := func(name, authority, statement string) (string, error) {
		uri := strings.Replace(texts["verified-uri"], "@"+texts["host"]+":", "@"+name+":", 1)
		out, err := d.inStore(ctx, []byte(uri+"\n"+authority), "data", "exec", "mysql", statement)
		return strings.TrimSpace(out), err
	}
	var errs []error
	names := d.hosts()
	for _, name := range names {
		version, err := by(name, texts["ca.crt"], "SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Ssl_version'")
		if err != nil || !strings.HasPrefix(version, "TLSv1.") {
			errs = append(errs, fmt.Errorf("VERIFY_IDENTITY of %s with %q: %w", name, version, err))
		}
	}
	n.Addf("%d names verified", len(names))
	for name, want := range map[string]string{texts["host"]: "0", texts["ro-host"]: "1"} {
		if got, err := by(name, texts["ca.crt"], "SELECT @@super_read_only"); err != nil || got != want {
			errs = append(errs, fmt.Errorf("super_read_only at %s is %q, not %s: %w", name, got, want, err))
		}
	}
	other, _, _, err := harness.Certificate("other")
	if err != nil {
		return err
	}
	for _, c := range []struct{ name, authority, want string }{
		{harness.Field(d.primary(), "status", "podIP"), texts["ca.crt"], "cannot validate certificate for"},
		{texts["host"], other, "certificate signed by unknown authority"},
	} {
		if _, err := by(c.name, c.authority, "SELECT 1"); err == nil || !strings.Contains(err.Error(), c.want) {
			errs = append(errs, fmt.Errorf("VERIFY_IDENTITY of %s is not refused with %q: %w", c.name, c.want, err))
		}
	}
	return errors.Join(append(errs, d.connectsJDBC(ctx, texts["jdbc-uri"]))...)
}

// hosts returns the names by which servers are reached within the cluster.
func (d *database) hosts() []string {
	servers := []string{claimName + "-primary", claimName + "-replica"}
	for _, p := range d.pods() {
		servers = append(servers, p.GetName()+"."+setName)
	}
	var out []string
	for _, host := range servers {
		out = append(out, host, host+"."+d.namespace, host+"."+d.namespace+".svc")
	}
	return out
}

// connectsJDBC checks that what is in the URL for Java leads to the primary.
func (d *database) connectsJDBC(ctx context.Context, raw string) error {
	u, err := url.Parse(strings.TrimPrefix(raw, "jdbc:"))
	if err != nil {
		return errors.New("jdbc-uri cannot be parsed")
	}
	settings := u.Query()
	u.User, u.RawQuery = url.UserPassword(settings.Get("user"), settings.Get("password")), url.Values{"ssl-mode": {settings.Get("sslMode")}}.Encode()
	out, err := d.inStore(ctx, []byte(u.String()), "data", "exec", "mysql", "SELECT @@super_read_only")
	if err != nil || strings.TrimSpace(out) != "0" || settings.Get("sslMode") != "REQUIRED" {
		return fmt.Errorf("jdbc-uri does not lead to the primary with sslMode REQUIRED: %q: %w", out, err)
	}
	return nil
}
