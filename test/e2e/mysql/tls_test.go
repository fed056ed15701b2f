//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// verifies: a client that verifies servers by verified-uri connects by each of their names, and to no server of another
// authority or, unless a certificate was brought, by another name. The Services lead to the primary and to replicas, and what
// the Secret has for Java connects, too.
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
	names, identity := d.hosts(), strings.Contains(texts["verified-uri"], "ssl-mode=VERIFY_IDENTITY&")
	for _, name := range names {
		version, err := by(name, texts["ca.crt"], "SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Ssl_version'")
		if err != nil || !strings.HasPrefix(version, "TLSv1.") {
			errs = append(errs, fmt.Errorf("%s cannot be verified, TLS is %q: %w", name, version, err))
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
	if _, err := by(texts["host"], other, "SELECT 1"); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		errs = append(errs, fmt.Errorf("a client with another authority is not refused for that: %w", err))
	}
	address := harness.Field(d.primary(), "status", "podIP")
	if _, err := by(address, texts["ca.crt"], "SELECT 1"); identity && (err == nil || !strings.Contains(err.Error(), "cannot validate certificate for")) {
		errs = append(errs, fmt.Errorf("%s, which is no name in the certificate, is not refused for that: %w", address, err))
	}
	return errors.Join(append(errs, d.connectsJDBC(ctx, texts["jdbc-uri"]))...)
}

// hosts returns the names by which servers are reached within the cluster.
func (d *database) hosts() []string {
	out := []string{claimName + "-primary", claimName + "-replica"}
	servers := slices.Clone(out)
	for _, p := range d.pods() {
		servers = append(servers, p.GetName()+"."+setName)
	}
	for _, host := range servers {
		out = append(out, host+"."+d.namespace, host+"."+d.namespace+".svc")
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
