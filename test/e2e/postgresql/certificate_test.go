//go:build e2e

package postgresql

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/pki"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// mountedWithin is how long it may take until the kubelet shows a changed Secret to a pod, and
// Patroni and PostgreSQL have read it.
const mountedWithin = 3 * time.Minute

const (
	serverSecret    = claimName + "-tls"
	authoritySecret = claimName + "-ca"
	broughtSecret   = "brought"
	controlSecret   = claimName + "-control-tls"
)

// The arguments with which openssl connects to PostgreSQL and to Patroni.
const (
	toPostgreSQL = "-starttls postgres -connect localhost:5432"
	toPatroni    = "-connect localhost:8008"
)

// serial returns the serial number of the certificate that a server shows to clients.
func (d *database) serial(ctx context.Context, pod, to string) (string, error) {
	out, err := cluster.Exec(ctx, d.namespace, pod, container, nil,
		"sh", "-c", "openssl s_client "+to+" </dev/null 2>/dev/null | openssl x509 -noout -serial")
	return strings.TrimSpace(out), err
}

// losesControl deletes the Secret with the certificate by which the servers authenticate each
// other, and with its authority. No server may restart, and a switchover has to work once all of
// them use the new one.
func (d *database) losesControl(ctx context.Context, n notes) error {
	before, err := d.started(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	was, err := d.secret(controlSecret, "ca.crt")
	if err != nil {
		return err
	}
	if err := cluster.Delete(ctx, "Secret", d.namespace, controlSecret); err != nil {
		return err
	}
	err = d.world.Await(ctx, soon, "another authority in Secret "+controlSecret, func() (bool, string) {
		now, err := d.secret(controlSecret, "ca.crt")
		return err == nil && now != was, fmt.Sprintf("%v; %s", err, d.status())
	})
	if err != nil {
		return err
	}
	if err := d.showsNew(ctx, controlSecret, toPatroni); err != nil {
		return err
	}
	n.Addf("used by all after %.1fs", time.Since(start).Seconds())
	if err := d.unrestarted(ctx, before); err != nil {
		return err
	}
	p := d.primary()
	if p == nil {
		return fmt.Errorf("not exactly one pod is primary: %s", d.status())
	}
	for _, other := range d.pods() {
		if other.GetName() != p.GetName() {
			return d.switchover(ctx, other.GetName())
		}
	}
	return errors.New("there is no standby to hand over to")
}

// renews replaces the certificate by one that was signed 70 days ago and is valid for 90, and
// checks that it is renewed without a restart.
func (d *database) renews(ctx context.Context, n notes) error {
	started, err := d.started(ctx)
	if err != nil {
		return err
	}
	if err := d.ages(ctx, n); err != nil {
		return err
	}
	if err := d.unrestarted(ctx, started); err != nil {
		return err
	}
	return d.hasTLS(ctx, n)
}

// renewsRefused checks that the certificate of a refused claim is renewed too, because a mistake in
// a claim may stay for longer than a certificate is valid.
func (d *database) renewsRefused(ctx context.Context, n notes) error {
	tc := impossible["Downgrade"]
	if err := d.change(ctx, tc.change); err != nil {
		return err
	}
	err := d.says(ctx, soon, "Accepted False: "+tc.want)
	if err == nil {
		err = d.ages(ctx, n)
	}
	if c := d.status(); err == nil && c.Is("Accepted") {
		err = fmt.Errorf("the claim is not refused any more, so this shows nothing: %s", c)
	}
	err = errors.Join(err, d.change(context.WithoutCancel(ctx), tc.undo))
	if err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	return d.hasTLS(ctx, n)
}

// ages replaces the certificate of the servers by an old one, and waits until all of them serve a
// new one.
func (d *database) ages(ctx context.Context, n notes) error {
	var old pki.Pair
	var err error
	if old.Certificate, err = d.secret(authoritySecret, "ca.crt"); err != nil {
		return err
	}
	if old.Key, err = d.secret(authoritySecret, "ca.key"); err != nil {
		return err
	}
	aged, err := pki.Server(old, []string{"aged"}, time.Now().Add(-70*24*time.Hour))
	if err != nil {
		return err
	}
	start := time.Now()
	patched, err := cluster.Patch(ctx, "Secret", d.namespace, serverSecret, harness.Patch{"stringData": harness.Patch{
		corev1.TLSCertKey: aged.Certificate, corev1.TLSPrivateKeyKey: aged.Key,
	}})
	if err != nil {
		return err
	}
	// Secrets have no generation: the old certificate is recognized by its revision.
	aging := patched.GetResourceVersion()
	err = d.world.Await(ctx, soon, "another certificate than the aged one", func() (bool, string) {
		seen := slices.ContainsFunc(d.world.History("Secret", serverSecret), func(v harness.Version) bool { return v.Revision() == aging })
		now, err := d.secret(serverSecret, corev1.TLSCertKey)
		return err == nil && seen && now != aged.Certificate, fmt.Sprintf("the aged one was seen: %t; %v; %s", seen, err, d.status())
	})
	if err != nil {
		return err
	}
	n.Addf("renewed after %.1fs", time.Since(start).Seconds())
	if err := d.showsNew(ctx, serverSecret, toPostgreSQL); err != nil {
		return err
	}
	n.Addf("served by all after %.1fs", time.Since(start).Seconds())
	return nil
}

// showsNew waits until every server shows the certificate in a Secret.
func (d *database) showsNew(ctx context.Context, secret, to string) error {
	text, err := d.secret(secret, corev1.TLSCertKey)
	if err != nil {
		return err
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return errors.New("the renewed certificate is not in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("cannot read the renewed certificate: %w", err)
	}
	return harness.Await(ctx, mountedWithin, "all servers to show the renewed certificate", func(ctx context.Context) (bool, error) {
		for _, p := range d.pods() {
			have, err := d.serial(ctx, p.GetName(), to)
			if err != nil {
				return false, err
			}
			number, ok := new(big.Int).SetString(strings.TrimPrefix(have, "serial="), 16)
			if !ok || number.Cmp(cert.SerialNumber) != 0 {
				return false, fmt.Errorf("server %s shows the one of %q still", p.GetName(), have)
			}
		}
		return true, nil
	})
}

// bringsTLS makes the servers use a certificate of another authority, and then their own again.
func (d *database) bringsTLS(ctx context.Context, n notes) error {
	ca, err := pki.Authority("another authority", pki.Pair{}, time.Now())
	if err != nil {
		return err
	}
	names := []string{primaryName, primaryName + "." + d.namespace + ".svc", claimName + "-replica." + d.namespace + ".svc"}
	for _, p := range d.pods() {
		names = append(names, p.GetName()+"."+setName+"."+d.namespace+".svc")
	}
	pair, err := pki.Server(ca, names, time.Now())
	if err != nil {
		return err
	}
	if err := d.change(ctx, harness.Patch{"tls": harness.Patch{"secretName": broughtSecret}}); err != nil {
		return err
	}
	if err := d.says(ctx, soon, "Secret "+broughtSecret+" does not exist"); err != nil {
		return err
	}
	start := time.Now()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: broughtSecret}, Type: corev1.SecretTypeTLS, StringData: map[string]string{
		corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key, "ca.crt": ca.Certificate,
	}}
	if _, err := cluster.Kube.CoreV1().Secrets(d.namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create Secret %s: %w", broughtSecret, err)
	}
	err = d.world.Await(ctx, settled, "the connection's ca.crt to be the one that was brought", func() (bool, string) {
		have, err := d.secret(connection, "ca.crt")
		return err == nil && have == ca.Certificate, d.status().String()
	})
	if err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	n.Addf("brought after %.1fs", time.Since(start).Seconds())
	l, err := d.login(connection, "app")
	if err != nil {
		return err
	}
	l.CA, l.Settings["sslmode"] = ca.Certificate, "verify-full"
	if _, err := d.client.SQL(ctx, l, "SELECT 1"); err != nil {
		return fmt.Errorf("verify-full with the certificate that was brought: %w", err)
	}
	if err := d.change(ctx, harness.Patch{"tls": nil}); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	return errors.Join(d.hasTLS(ctx, n), cluster.Delete(ctx, "Secret", d.namespace, broughtSecret))
}
