//go:build e2e

package backup

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// kept checks databases with keys of their own in a store that namespaces share.
type kept struct {
	// platform is the namespace with the store, and tenant that of a tenant.
	platform, tenant *ground
}

const keptName = "kept"

func keys() types.Feature {
	k := &kept{platform: newGround("e2e-backup-platform"), tenant: newGround("e2e-backup-tenant")}
	return tests.Feature("keys of databases' own", k.platform.namespace).
		Full("a namespace that is lost is restored with the copy of its key", k.comesBack).
		Feature()
}

// comesBack checks that a tenant's database, which is encrypted with a key of its own, can be
// restored after its namespace is deleted: into another namespace that is granted it, and into the
// namespace of the same name, where the claim continues with the same key.
func (k *kept) comesBack(ctx context.Context, n notes) error {
	if err := errors.Join(k.platform.ready(ctx), k.tenant.ready(ctx)); err != nil {
		return err
	}
	if err := k.platform.store(ctx, backupv1.S3); err != nil {
		return err
	}
	err := cluster.WithSettings(ctx, k.settings(), func() error { return k.walk(ctx, n) })
	return errors.Join(err, cluster.Delete(context.WithoutCancel(ctx), "Secret", backup.EscrowNamespace, k.copied()))
}

func (k *kept) copied() string { return backup.EscrowName(k.tenant.namespace, keptName) }

// settings returns settings by which backups have keys of their own.
func (k *kept) settings() map[string]any {
	to := k.platform.destination(backupv1.S3, engines[0])
	return map[string]any{"backup": map[string]any{
		"type": string(to.Type), "bucket": to.Bucket, "prefix": to.Prefix, "endpoint": to.Endpoint, "encryption": "Generated",
		"secretRef": map[string]any{"name": to.SecretRef.Name, "namespace": k.platform.namespace, "shared": true},
		"grants":    []any{map[string]any{"of": k.tenant.namespace, "to": []any{k.platform.namespace}}},
	}}
}

func (k *kept) walk(ctx context.Context, n notes) error {
	t := &timed{ground: k.tenant}
	if err := k.claim(ctx, t, keptName, nil); err != nil {
		return err
	}
	if err := t.archives(ctx, keptName); err != nil {
		return err
	}
	err := t.awaitBackup(ctx, givenUp, keptName+"-backup", "to be Ready, with its key kept", func(b backupv1.Backup) bool { return is(b, "Ready", "True", "") })
	if err != nil {
		return err
	}
	key, err := k.key(ctx, k.tenant.namespace, keptName+"-backup-key")
	if err != nil {
		return err
	}
	if copied, err := k.key(ctx, backup.EscrowNamespace, k.copied()); err != nil || copied != key {
		return errors.Join(err, errors.New("the copy in escrow is not the key"))
	}
	if _, err := t.data(ctx, t.uri(engines[0], keptName), "exec", "postgresql", "CREATE TABLE seen (n int); INSERT INTO seen VALUES (1)"); err != nil {
		return err
	}
	if _, err := t.archivedOn(ctx, keptName+"-postgresql-0"); err != nil {
		return err
	}

	if err := k.lose(ctx); err != nil {
		return err
	}
	to := k.platform.destination(backupv1.S3, engines[0])
	from := map[string]any{"destination": map[string]any{"type": string(to.Type), "bucket": to.Bucket}, "namespace": k.tenant.namespace, "name": keptName}
	other := &timed{ground: k.platform}
	if err := k.claim(ctx, other, "found", from); err != nil {
		return err
	}
	if err := other.has(ctx, "found", 1); err != nil {
		return err
	}
	n.Addf("another namespace has its rows")

	again := &timed{ground: newGround(k.tenant.namespace)}
	if err := again.ready(ctx); err != nil {
		return err
	}
	if err := k.claim(ctx, again, keptName, from); err != nil {
		return err
	}
	if now, err := k.key(ctx, k.tenant.namespace, keptName+"-backup-key"); err != nil || now != key {
		return errors.Join(err, errors.New("the claim of the old name has another key"))
	}
	if err := again.has(ctx, keptName, 1); err != nil {
		return err
	}
	n.Addf("the claim of the old name goes on with its key")
	return again.archives(ctx, keptName)
}

// claim applies a DatabaseCluster with backups and waits until it is Ready.
func (k *kept) claim(ctx context.Context, in *timed, name string, from map[string]any) error {
	u, err := manifests.Read("backup/postgresql.yaml", map[string]string{"NAME": name, "NAMESPACE": in.namespace, "RESTORE": "restoreFrom: {}"})
	if err != nil {
		return err
	}
	spec := u.Object["spec"].(map[string]any)
	delete(spec, "restoreFrom")
	if from != nil {
		spec["restoreFrom"] = from
	}
	spec["backup"] = map[string]any{"enabled": true}
	spec["parameters"] = map[string]any{"archive_timeout": "20"}
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	return in.world.AwaitReady(ctx, givenUp, "DatabaseCluster", name)
}

// key returns the key in a Secret.
func (k *kept) key(ctx context.Context, namespace, name string) (string, error) {
	u, err := cluster.Get(ctx, "Secret", namespace, name)
	if err != nil {
		return "", err
	}
	if u == nil {
		return "", fmt.Errorf("there is no Secret %s/%s", namespace, name)
	}
	key, err := base64.StdEncoding.DecodeString(harness.Field(u, "data", backup.EscrowKey))
	if err == nil && strings.TrimSpace(string(key)) == "" {
		err = fmt.Errorf("Secret %s/%s has no key", namespace, name)
	}
	return string(key), err
}

// lose deletes the tenant's database and its namespace.
func (k *kept) lose(ctx context.Context) error {
	if err := (&timed{ground: k.tenant}).deleted(ctx, keptName); err != nil {
		return err
	}
	return lose(ctx, k.tenant.namespace)
}

// lose deletes a namespace and waits until it is gone.
func lose(ctx context.Context, name string) error {
	if err := cluster.Delete(ctx, "Namespace", "", name); err != nil {
		return err
	}
	err := wait.For(func(ctx context.Context) (bool, error) {
		_, err := cluster.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		return kerrors.IsNotFound(err), nil
	}, wait.WithContext(ctx), wait.WithTimeout(givenUp))
	if err != nil {
		return fmt.Errorf("cannot wait any longer until namespace %s is gone: %w", name, err)
	}
	return nil
}
