//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Names of a Backup with the platform's credentials, its Secret with a key, the
// ClusterProviderConfig and its prefix.
const (
	ownName   = "own"
	ownSecret = ownName + "-dump-key"
	ownConfig = "e2e-backup"
	ownPrefix = "e2e/own"
)

// losesNamespace checks a Backup in the platform's store that names no key: its objects are
// encrypted, and after its namespace is deleted and created again the copy of its key restores
// them.
func (g *ground) losesNamespace(ctx context.Context, n notes) error {
	tenant := newGround(g.namespace + "-own")
	copied := backup.LogicalEscrowName(tenant.namespace, ownName)
	if err := errors.Join(g.ready(ctx), tenant.ready(ctx)); err != nil {
		return err
	}
	if err := g.store(ctx, backupv1.S3); err != nil {
		return err
	}
	err := errors.Join(g.lend(ctx), g.loses(ctx, n, tenant, copied))
	after := context.WithoutCancel(ctx)
	return errors.Join(err, cluster.Delete(after, "ClusterProviderConfig", "", ownConfig), cluster.Delete(after, "Secret", backup.EscrowNamespace, copied))
}

// lend creates a ClusterProviderConfig by which all namespaces use the store's credentials.
func (g *ground) lend(ctx context.Context) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "storeplane.example.com/v1", "kind": "ClusterProviderConfig",
		"spec": map[string]any{
			"bucket": bucket, "prefix": ownPrefix, "endpoint": g.destination(backupv1.S3, engines[0]).Endpoint,
			"credentials": map[string]any{"source": "Secret", "shared": true, "secretRef": map[string]any{"name": string(backupv1.S3), "namespace": g.namespace}},
		},
	}}
	u.SetName(ownConfig)
	u.SetLabels(map[string]string{harness.Label: "e2e-backup"})
	_, err := cluster.Create(ctx, u)
	return err
}

// lent creates an object of one of the provider's kinds that uses these credentials.
func (g *ground) lent(ctx context.Context, kind, name string, forProvider any) error {
	u, err := object(kind, g.namespace, name, forProvider)
	if err != nil {
		return err
	}
	u.Object["spec"].(map[string]any)["providerConfigRef"] = map[string]any{"kind": "ClusterProviderConfig", "name": ownConfig}
	_, err = cluster.Create(ctx, u)
	return err
}

func (g *ground) loses(ctx context.Context, n notes, tenant *ground, copied string) error {
	e := engine{backupv1.MySQL, "1000"}
	if err := tenant.loaded(ctx, e); err != nil {
		return err
	}
	to := backupv1.Destination{Type: backupv1.S3, Bucket: bucket}
	err := tenant.lent(ctx, "Backup", ownName, &backupv1.BackupParameters{
		Source: e.database(e.source()), Destination: to, Compression: "none", Verification: &backupv1.Verification{},
	})
	if err != nil {
		return err
	}
	id, err := tenant.succeed(ctx, ownName)
	if err != nil {
		return err
	}
	if err := tenant.proven(ctx, ownName, id); err != nil {
		return err
	}
	k := &kept{tenant: tenant}
	key, err := k.key(ctx, tenant.namespace, ownSecret)
	if err != nil {
		return err
	}
	if kept, err := k.key(ctx, backup.EscrowNamespace, copied); err != nil || kept != key {
		return errors.Join(err, errors.New("the copy in escrow is not the key"))
	}
	if b := tenant.backup(ownName); !is(b, backupv1.TypeEscrowed, "True", backupv1.ReasonKept) {
		return fmt.Errorf("the Backup does not report that its key is kept: %s", says(b))
	}
	if err := g.encrypted(ctx, path.Join(ownPrefix, tenant.namespace, ownName, "logical", id)); err != nil {
		return err
	}

	if err := lose(ctx, tenant.namespace); err != nil {
		return err
	}
	again := newGround(tenant.namespace)
	again.sums = tenant.sums
	if err := again.ready(ctx); err != nil {
		return err
	}
	if err := again.emptied(ctx, e); err != nil {
		return err
	}
	const name = "found"
	err = again.lent(ctx, "Restore", name, &backupv1.RestoreParameters{
		Source: backupv1.RestoreSource{Location: &backupv1.Location{Name: ownName, Destination: to}}, Target: e.database(e.target()),
	})
	if err != nil {
		return err
	}
	r, err := again.completed(ctx, name)
	if err != nil {
		return err
	}
	if o := r.Status.AtProvider; o.Backup != id {
		return fmt.Errorf("backup %s was restored instead of %s", o.Backup, id)
	}
	if err := again.same(ctx, e); err != nil {
		return err
	}
	n.Addf("restored by the copy of the key after its namespace was lost")
	return again.world.AwaitGone(ctx, soon, "Secret", name+"-restore-key")
}

// encrypted checks that the objects of a backup in S3 are encrypted by age, and that a word of the
// data is not found in them.
func (g *ground) encrypted(ctx context.Context, folder string) error {
	files, err := g.all(ctx, backupv1.S3, folder)
	if err != nil {
		return err
	}
	objects := 0
	for _, f := range files {
		if strings.HasSuffix(f, ".json") {
			continue
		}
		objects++
		if !strings.HasSuffix(f, ".age") {
			return fmt.Errorf("%s is not encrypted by its name", f)
		}
		found, err := g.on(ctx, string(backupv1.S3), "grep", "customer 1", f)
		if err != nil {
			return err
		}
		if strings.TrimSpace(found) != "0" {
			return fmt.Errorf("%s has the data in plain text", f)
		}
	}
	if objects == 0 {
		return fmt.Errorf("there are no objects in %s, so this shows nothing", folder)
	}
	return nil
}
