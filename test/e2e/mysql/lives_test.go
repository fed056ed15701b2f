//go:build e2e

package mysql

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pki"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	serverSecret    = claimName + "-tls"
	authoritySecret = claimName + "-ca"
	reportsSecret   = claimName + "-user-reports"

	// mountedWithin is how long it may take until the kubelet shows a changed Secret to a pod, and MySQL has
	// read it.
	mountedWithin = 3 * time.Minute

	// rotatedWithin is the time that users are promised, and rewrittenWithin how long a password may be away from its
	// Secret that is not drawn again.
	rotatedWithin   = time.Minute
	rewrittenWithin = 15 * time.Second
)

// withClient is a check before which a pod with a client of MySQL is started: its start takes processor time.
func (d *database) withClient(do check) check {
	return func(ctx context.Context, n notes) error {
		if err := errors.Join(d.ready(ctx), d.startStore(ctx)); err != nil {
			return err
		}
		return do(ctx, n)
	}
}

// keptPods returns an error if pods were replaced.
func (d *database) keptPods(before map[string]string) error {
	if diff := cmp.Diff(before, d.uids()); diff != "" {
		return fmt.Errorf("pods were replaced:\n%s", diff)
	}
	return nil
}

// value returns a value of a Secret.
func (d *database) value(secret, key string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(harness.Field(d.world.Get("Secret", secret), "data", key))
	if err != nil || len(b) == 0 {
		return "", fmt.Errorf("cannot read %s of Secret %s: %w", key, secret, err)
	}
	return string(b), nil
}

// renews: a client without TLS is refused. The certificate is replaced by one that was signed 70 days ago and is
// valid for 90, and all servers show a new one to clients without a restart.
func (d *database) renews(ctx context.Context, n notes) error {
	uri, err := d.value(connection, "uri")
	if err != nil {
		return err
	}
	plain := strings.Replace(uri, "ssl-mode=REQUIRED", "ssl-mode=DISABLED", 1)
	if _, err := d.inStore(ctx, []byte(plain), "data", "exec", "mysql", "SELECT 1"); plain == uri || err == nil || !strings.Contains(err.Error(), "require_secure_transport") {
		return fmt.Errorf("a client without TLS is not refused for that: %w", err)
	}
	return d.ages(ctx, n)
}

// endFormat is how MySQL writes when a certificate ends.
const endFormat = "Jan _2 15:04:05 2006 MST"

// ages replaces the certificate by an old one, and waits until all servers show a new one to clients.
func (d *database) ages(ctx context.Context, n notes) error {
	before := d.uids()
	var authority pki.Pair
	var err error
	if authority.Certificate, err = d.value(authoritySecret, "ca.crt"); err != nil {
		return err
	}
	if authority.Key, err = d.value(authoritySecret, "ca.key"); err != nil {
		return err
	}
	aged, err := pki.Server(authority, []string{"aged"}, time.Now().Add(-70*24*time.Hour))
	if err != nil {
		return fmt.Errorf("cannot make a certificate: %w", err)
	}
	shown, err := d.ends(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	_, err = cluster.Patch(ctx, "Secret", d.namespace, serverSecret, harness.Patch{"stringData": harness.Patch{
		corev1.TLSCertKey: aged.Certificate, corev1.TLSPrivateKeyKey: aged.Key,
	}})
	if err != nil {
		return err
	}
	err = harness.Await(ctx, mountedWithin, "all servers to show a new certificate", func(ctx context.Context) (bool, error) {
		now, err := d.ends(ctx)
		if err != nil {
			return false, err
		}
		for pod, end := range now {
			if at, err := time.Parse(endFormat, end); err != nil || end == shown[pod] || at.Before(time.Now().Add(80*24*time.Hour)) {
				return false, errors.Join(err, fmt.Errorf("%s shows one that ends at %s", pod, end))
			}
		}
		return true, nil
	})
	n.Addf("shown by all after %.0fs", time.Since(start).Seconds())
	if err := errors.Join(err, d.keptPods(before)); err != nil {
		return err
	}
	return d.verifies(ctx, n)
}

// ends returns until when the certificate is valid that each server shows to clients.
func (d *database) ends(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range d.pods() {
		end, err := d.sqlAt(ctx, p, "SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Ssl_server_not_after'")
		if err != nil {
			return nil, err
		}
		out[p.GetName()] = strings.TrimSpace(end)
	}
	return out, nil
}

// rotates: a password is drawn again once it is removed from its Secret, and a user that is removed from the claim
// cannot log in any more, while its database stays.
func (d *database) rotates(ctx context.Context, n notes) error {
	if err := d.hasUsers(ctx, n); err != nil {
		return err
	}
	if _, err := d.sqlBy(ctx, reportsSecret, "CREATE TABLE IF NOT EXISTS sales (n INT PRIMARY KEY); REPLACE INTO sales VALUES (1)"); err != nil {
		return err
	}
	old, err := d.value(reportsSecret, "uri")
	if err != nil {
		return err
	}
	start, removed := time.Now(), time.Time{}
	err = harness.Await(ctx, rotatedWithin, "another password to be taken", func(ctx context.Context) (bool, error) {
		now, err := d.value(reportsSecret, "uri")
		if err != nil || now == old {
			if time.Since(removed) > rewrittenWithin {
				// The claim may have been reconciled while it was removed, and have written it again.
				removed = time.Now()
				_, err = cluster.Patch(ctx, "Secret", d.namespace, reportsSecret, harness.Patch{"data": harness.Patch{"password": nil}})
			}
			return false, errors.Join(err, errors.New("it is the one of before"))
		}
		_, err = d.sqlBy(ctx, reportsSecret, "SELECT 1")
		return err == nil, err
	})
	if err != nil {
		return err
	}
	n.Addf("rotated after %.1fs", time.Since(start).Seconds())
	if err := d.isDenied(ctx, old); err != nil {
		return fmt.Errorf("with the password of before: %w", err)
	}
	now, err := d.value(reportsSecret, "uri")
	if err != nil {
		return err
	}
	if err := d.change(ctx, harness.Patch{"users": nil, "databases": nil}); err != nil {
		return err
	}
	err = harness.Await(ctx, rotatedWithin, "the removed user to be refused", func(ctx context.Context) (bool, error) {
		err := d.isDenied(ctx, now)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return d.reportsStay(ctx)
}

// isDenied returns an error unless a connection is refused.
func (d *database) isDenied(ctx context.Context, uri string) error {
	_, err := d.inStore(ctx, []byte(uri), "data", "exec", "mysql", "SELECT 1")
	if err == nil || !strings.Contains(err.Error(), "1045") && !strings.Contains(err.Error(), "3118") {
		return fmt.Errorf("a login is not refused: %w", err)
	}
	return nil
}

// reportsStay: the database of a removed user is there with its tables when it is claimed again.
func (d *database) reportsStay(ctx context.Context) error {
	err := d.change(ctx, harness.Patch{"users": []any{harness.Patch{"name": "reports"}}, "databases": []any{harness.Patch{"name": "reports", "owner": "reports"}}})
	if err != nil {
		return err
	}
	return eventually(ctx, "the database of a removed user to be there", func() (bool, string) {
		got, err := d.sqlBy(ctx, reportsSecret, "SELECT COUNT(*) FROM sales")
		return err == nil && strings.TrimSpace(got) == "1", fmt.Sprint(got, err)
	})
}

// cutsReplicaOff: a replica that is cut off from the other servers, but not from the API server, names the primary
// that serves, and neither advises to overthrow it nor does so where it is named to lead.
func (d *database) cutsReplicaOff(ctx context.Context, n notes) (err error) {
	replica, primary := d.with("replica")[0], d.primary()
	heal, err := d.separate(ctx, replica, d.others(replica)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, heal()) }()
	start := time.Now()
	want := "Waiting for " + primary.GetName() + ", which is ready as the primary, to answer this server"
	err = d.world.Await(ctx, settled, "the replica to wait for the primary", func() (bool, string) {
		is := d.status().String()
		return strings.Contains(is, want), is
	})
	n.Addf("reported after %.0fs", time.Since(start).Seconds())
	if err == nil && strings.Contains(d.status().String(), "lead-with") {
		err = fmt.Errorf("the claim advises to overthrow the primary: %s", d.status())
	}
	if err == nil {
		err = d.names(ctx, replica.GetName(), primary.GetName())
	}
	return err
}

// names has the annotation name a server to lead while another one does.
func (d *database) names(ctx context.Context, pod, primary string) error {
	record, err := d.record()
	if err != nil {
		return err
	}
	uid := string(d.world.Get("DatabaseCluster", claimName).GetUID())
	value := instance.VolumeClaim(pod) + "@" + instance.LeadState(uid, strconv.FormatInt(record.Epoch, 10))
	annotate := func(ctx context.Context, value any) error {
		_, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, claimName, harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{instance.LeadWithAnnotation: value}}})
		return err
	}
	if err := annotate(ctx, value); err != nil {
		return err
	}
	err = d.world.Await(ctx, soon, "the annotation to reach the servers", func() (bool, string) {
		desired := harness.Field(d.world.Get("ConfigMap", setName), "data", instance.DesiredKey)
		return strings.Contains(desired, value), desired
	})
	if err == nil {
		// The servers read it at least once a second.
		err = harness.Until(ctx, time.Now().Add(10*time.Second))
	}
	if p := d.primary(); err == nil && (p == nil || p.GetName() != primary) {
		err = fmt.Errorf("the primary was %s: %s", primary, d.status())
	}
	return errors.Join(err, annotate(context.WithoutCancel(ctx), nil))
}

// losesCrossplane: another server takes over while no function runs.
func (d *database) losesCrossplane(ctx context.Context, n notes) error {
	return cluster.WithoutCrossplane(ctx, soon, func(deployments []appsv1.Deployment) error {
		old := d.primary()
		if err := d.losesPrimary(ctx, n); err != nil {
			return err
		}
		n.Addf("%d deployments at zero", len(deployments))
		return d.replaced(ctx, "Pod", old)
	})
}

// grows expands every volume by 10Gi. Volumes cannot shrink, so the claim keeps the new size.
func (d *database) grows(ctx context.Context, n notes) error {
	have, err := resource.ParseQuantity(harness.Field(d.world.Get("DatabaseCluster", claimName), "spec", "storageSize"))
	if err != nil {
		return fmt.Errorf("cannot parse storageSize: %w", err)
	}
	want := have.DeepCopy()
	want.Add(resource.MustParse("10Gi"))
	before, start := d.uids(), time.Now()
	if err := d.change(ctx, harness.Patch{"storageSize": want.String()}); err != nil {
		return err
	}
	err = d.grown(ctx, want)
	n.Addf("%s to %s in %.1fs", &have, &want, time.Since(start).Seconds())
	if err := errors.Join(err, d.keptPods(before)); err != nil {
		return err
	}
	err = d.change(ctx, harness.Patch{"storageSize": have.String()}, metav1.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("storageSize may not shrink: %s to %s", &want, &have)) {
		return fmt.Errorf("to shrink is not refused with a message: %w", err)
	}
	return nil
}

// losesGrown: a volume that is created after the claim has asked for more has the same size, although the template of the
// StatefulSet cannot be changed.
func (d *database) losesGrown(ctx context.Context, n notes) error {
	want, err := resource.ParseQuantity(harness.Field(d.world.Get("DatabaseCluster", claimName), "spec", "storageSize"))
	if err != nil {
		return fmt.Errorf("cannot parse storageSize: %w", err)
	}
	if err := d.losesVolume(ctx, n); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	return d.grown(ctx, want)
}

// grown waits until all volumes have at least this size.
func (d *database) grown(ctx context.Context, want resource.Quantity) error {
	return d.world.Await(ctx, settled, fmt.Sprintf("volumes of %s", &want), func() (bool, string) {
		for _, p := range d.pods() {
			name := "data-" + p.GetName()
			has, err := resource.ParseQuantity(harness.Field(d.world.Get("PersistentVolumeClaim", name), "status", "capacity", "storage"))
			if err != nil || has.Cmp(want) < 0 {
				return false, fmt.Sprintf("%s has %s; %s", name, &has, d.status())
			}
		}
		return true, ""
	})
}
