package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// restored is how long Restores that are created right after a change of the provider's leader take
// to begin, beside the Backups that it reconciles: one time for each change.
type restored struct {
	backups int
	took    []time.Duration
}

const (
	storeSecret  = "store"
	targetSecret = "target"
)

// backups creates n Backups whose database does not exist, so that they run nothing. A new leader
// reconciles each of them all the same.
func (b *bench) backups(ctx context.Context, n int) error {
	for name, texts := range map[string]map[string]string{
		storeSecret:  {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"},
		targetSecret: {"host": "target", "port": "5432", "username": "bench", "password": "bench", "dbname": "bench"},
	} {
		if err := b.cluster.CreateSecret(ctx, namespace, name, texts); err != nil {
			return err
		}
	}
	names := make([]string, n)
	for i := range n {
		names[i] = fmt.Sprintf("backup-%04d", i)
	}
	err := each(names, func(name string) error {
		return b.create(ctx, "Backup", name, map[string]any{
			"source":      map[string]any{"type": "postgresql", "connection": map[string]any{"secretRef": map[string]any{"name": "none"}}},
			"destination": destination(), "schedule": "@daily",
		})
	})
	if err != nil {
		return err
	}
	return b.until(ctx, 15*time.Minute, "all Backups to report that their Secret does not exist", func() (bool, error) {
		list, err := b.cluster.List(ctx, "Backup", namespace, "")
		if err != nil {
			return false, err
		}
		for i := range list {
			if c, _, _ := unstructured.NestedSlice(list[i].Object, "status", "conditions"); len(c) == 0 {
				return false, nil
			}
		}
		return len(list) == n, nil
	})
}

func destination() map[string]any {
	return map[string]any{"type": "s3", "bucket": "bench", "endpoint": "https://store.bench-scale.svc", "secretRef": map[string]any{"name": storeSecret}}
}

// create creates a managed resource.
func (b *bench) create(ctx context.Context, kind, name string, parameters map[string]any) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "backup.example.com/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"forProvider": parameters},
	}}
	_, err := b.cluster.Create(ctx, u)
	return err
}

// restore measures for a number of changes of the provider's leader how long a Restore takes to begin.
func (b *bench) restore(ctx context.Context) (_ *restored, err error) {
	out := &restored{backups: b.cli.Backups}
	// What they leave would be waited for when the claims are removed.
	defer func() { err = errors.Join(err, b.removeBackups(ctx)) }()
	if err := b.backups(ctx, out.backups); err != nil {
		return nil, err
	}
	for i := range b.cli.Leaders {
		took, err := b.restoreAfterLeader(ctx, fmt.Sprintf("restore-%d", i))
		if err != nil {
			return nil, err
		}
		sayf("a Restore begins %.1fs after a change of leader, with %d Backups", took.Seconds(), out.backups)
		out.took = append(out.took, took)
	}
	return out, nil
}

// restoreAfterLeader deletes the provider's leader once all its replicas are ready, creates a Restore as
// soon as there is another leader, and measures how long it takes until the Restore's Job exists.
func (b *bench) restoreAfterLeader(ctx context.Context, name string) (time.Duration, error) {
	if err := b.until(ctx, 5*time.Minute, "all replicas of the provider to be ready", func() (bool, error) { return b.providerReady(ctx) }); err != nil {
		return 0, err
	}
	before, err := b.leader(ctx)
	if err != nil {
		return 0, err
	}
	if err := b.deleteLeader(ctx); err != nil {
		return 0, err
	}
	err = b.until(ctx, 2*time.Minute, "another leader of the provider", func() (bool, error) {
		now, err := b.leader(ctx)
		return err == nil && now != before, err
	})
	if err != nil {
		return 0, err
	}
	start := time.Now()
	err = b.create(ctx, "Restore", name, map[string]any{
		"source": map[string]any{"location": map[string]any{"name": "backup-0000", "destination": destination()}},
		"target": map[string]any{"type": "postgresql", "version": "17", "connection": map[string]any{"secretRef": map[string]any{"name": targetSecret}}},
	})
	if err != nil {
		return 0, err
	}
	err = b.until(ctx, 10*time.Minute, "the Restore to begin", func() (bool, error) {
		jobs, err := b.cluster.Kube.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: backupv1.RestoreLabel + "=" + name})
		return err == nil && len(jobs.Items) > 0, err
	})
	took := time.Since(start)
	if err != nil {
		u, e := b.cluster.Get(ctx, "Restore", namespace, name)
		if e == nil {
			err = fmt.Errorf("%s: %w", harness.ClaimOf(u), err)
		}
		return 0, errors.Join(err, e)
	}
	return took, nil
}

// providerReady reports whether the leader's Deployment has all its replicas.
func (b *bench) providerReady(ctx context.Context) (bool, error) {
	leader, err := b.leader(ctx)
	if err != nil {
		return false, err
	}
	list, err := b.cluster.Kube.AppsV1().Deployments(systemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, d := range list.Items {
		if strings.HasPrefix(leader, d.Name+"-") {
			return d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas, nil
		}
	}
	return false, fmt.Errorf("no Deployment of %s has the provider's leader %s", systemNamespace, leader)
}

// removeBackups removes the Restores, all Backups and their Secrets, also after an interrupt.
func (b *bench) removeBackups(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Minute)
	defer cancel()
	for _, kind := range []string{"Restore", "Backup"} {
		list, err := b.cluster.List(ctx, kind, namespace, "")
		if err != nil {
			return err
		}
		var names []string
		for i := range list {
			names = append(names, list[i].GetName())
		}
		err = each(names, func(name string) error { return b.cluster.Delete(ctx, kind, namespace, name) })
		if err != nil {
			return err
		}
	}
	err := b.until(ctx, 10*time.Minute, "the Restore and the Backups to be gone", func() (bool, error) {
		restores, restoresErr := b.cluster.List(ctx, "Restore", namespace, "")
		backups, backupsErr := b.cluster.List(ctx, "Backup", namespace, "")
		return restoresErr == nil && backupsErr == nil && len(restores)+len(backups) == 0, errors.Join(restoresErr, backupsErr)
	})
	for _, name := range []string{storeSecret, targetSecret} {
		err = errors.Join(err, b.cluster.Delete(ctx, "Secret", namespace, name))
	}
	return err
}
