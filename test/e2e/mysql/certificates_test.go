//go:build e2e

package mysql

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/pki"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	controlSecret = claimName + "-control-tls"
	broughtSecret = "brought"
)

// losesControl deletes the Secret with the certificate by which the servers know each other, and with its authority.
// No pod is replaced. A server that fails joins by the next one, and a primary hands over.
func (d *database) losesControl(ctx context.Context, n notes) error {
	before, start := d.uids(), time.Now()
	was, err := d.value(controlSecret, "ca.crt")
	if err != nil {
		return err
	}
	if err := cluster.Delete(ctx, "Secret", d.namespace, controlSecret); err != nil {
		return err
	}
	err = d.world.Await(ctx, soon, "another authority in Secret "+controlSecret, func() (bool, string) {
		now, err := d.value(controlSecret, "ca.crt")
		return err == nil && now != was, fmt.Sprintf("%v; %s", err, d.status())
	})
	if err != nil {
		return err
	}
	// Each pod has the files once the kubelet has written them.
	err = harness.Await(ctx, mountedWithin, "all servers to have the next authority", func(ctx context.Context) (bool, error) {
		now, err := d.value(controlSecret, "ca.crt")
		if err != nil {
			return false, err
		}
		for _, p := range d.pods() {
			have, err := cluster.Exec(ctx, d.namespace, p.GetName(), container, nil, "cat", control.Dir+"/ca.crt")
			if err != nil || have != now {
				return false, errors.Join(err, fmt.Errorf("%s has the one of before", p.GetName()))
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	n.Addf("mounted by all after %.0fs", time.Since(start).Seconds())
	if err := errors.Join(d.keptPods(before), d.whole(ctx, baseSize)); err != nil {
		return err
	}
	replica := d.with("replica")[0]
	if err := errors.Join(d.deletePod(ctx, replica), d.replaced(ctx, "Pod", replica), d.whole(ctx, baseSize)); err != nil {
		return fmt.Errorf("a server that joins by the next certificate: %w", err)
	}
	return d.evicts(ctx, n)
}

// bringsTLS has the servers show a certificate of another authority to clients, and then their own again.
func (d *database) bringsTLS(ctx context.Context, n notes) error {
	ca, err := pki.Authority("another authority", pki.Pair{}, time.Now())
	if err != nil {
		return fmt.Errorf("cannot make an authority: %w", err)
	}
	names := []string{claimName + "-primary", claimName + "-primary." + d.namespace + ".svc", claimName + "-replica." + d.namespace + ".svc"}
	for i := range baseSize {
		names = append(names, server(i)+"."+setName+"."+d.namespace+".svc")
	}
	// It ends at another time than the servers' own.
	pair, err := pki.Server(ca, names, time.Now().Add(-time.Hour))
	if err != nil {
		return fmt.Errorf("cannot make a certificate: %w", err)
	}
	block, _ := pem.Decode([]byte(pair.Certificate))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("cannot read a certificate: %w", err)
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
	if err := d.connectsBy(ctx, ca.Certificate, cert.NotAfter, true); err != nil {
		return fmt.Errorf("the certificate that was brought: %w", err)
	}
	n.Addf("brought after %.0fs", time.Since(start).Seconds())
	if err := d.verifies(ctx, n); err != nil {
		return fmt.Errorf("the certificate that was brought: %w", err)
	}
	if err := d.change(ctx, harness.Patch{"tls": nil}); err != nil {
		return err
	}
	if err := d.connectsBy(ctx, ca.Certificate, cert.NotAfter, false); err != nil {
		return fmt.Errorf("the servers' own certificate: %w", err)
	}
	if err := d.verifies(ctx, n); err != nil {
		return fmt.Errorf("the servers' own certificate: %w", err)
	}
	return cluster.Delete(ctx, "Secret", d.namespace, broughtSecret)
}

// connectsBy waits until the connection has an authority, all servers are well, and show a certificate with an end; or,
// if by is false, until they have and show another one.
func (d *database) connectsBy(ctx context.Context, authority string, end time.Time, by bool) error {
	err := d.world.Await(ctx, settled, "the connection's authority to change", func() (bool, string) {
		have, err := d.value(connection, "ca.crt")
		return err == nil && (have == authority) == by, fmt.Sprintf("%v; %s", err, d.status())
	})
	if err := errors.Join(err, d.whole(ctx, baseSize)); err != nil {
		return err
	}
	return harness.Await(ctx, mountedWithin, "all servers to show the certificate", func(ctx context.Context) (bool, error) {
		ends, err := d.ends(ctx)
		if err != nil {
			return false, err
		}
		for pod, shown := range ends {
			if at, err := time.Parse(endFormat, shown); err != nil || at.Equal(end) != by {
				return false, errors.Join(err, fmt.Errorf("%s shows one that ends at %s", pod, shown))
			}
		}
		return true, nil
	})
}

// renewsRefused: the certificate of a refused claim is renewed, too, since a mistake in a claim may stay for longer than
// a certificate is valid.
func (d *database) renewsRefused(ctx context.Context, n notes) (err error) {
	if err := d.change(ctx, harness.Patch{"size": 2}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.change(context.WithoutCancel(ctx), harness.Patch{"size": baseSize})) }()
	const refusal = "size must be odd with engine mysql"
	if err := d.says(ctx, soon, refusal); err != nil {
		return err
	}
	if err := d.ages(ctx, n); err != nil {
		return err
	}
	return d.says(ctx, soon, refusal)
}
