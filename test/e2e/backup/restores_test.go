//go:build e2e

package backup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// from returns the newest backup of a Backup as the source of a restore.
func from(backup string) backupv1.RestoreSource {
	return backupv1.RestoreSource{BackupRef: &backupv1.LocalReference{Name: backup}}
}

// restoreFile creates a Restore into the target of an engine.
func (g *ground) restoreFile(ctx context.Context, name string, e engine, source backupv1.RestoreSource, overwrite bool) error {
	u, err := object("Restore", g.namespace, name, &backupv1.RestoreParameters{Source: source, Target: e.database(e.target()), Overwrite: overwrite})
	if err != nil {
		return err
	}
	_, err = cluster.Create(ctx, u)
	return err
}

// restore returns the present state of a Restore.
func (g *ground) restore(name string) backupv1.Restore {
	r := backupv1.Restore{}
	if u := g.world.Get("Restore", name); u != nil {
		// A field that cannot be converted stays empty, and the checks that need it fail.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r)
	}
	return r
}

// restored waits for the end of a Restore and returns its state at that time.
func (g *ground) restored(ctx context.Context, within time.Duration, name string) (backupv1.Restore, error) {
	r := backupv1.Restore{}
	err := g.world.Await(ctx, within, "Restore "+name+" to end", func() (bool, string) {
		r = g.restore(name)
		o := r.Status.AtProvider
		return o.Phase == backupv1.RestoreCompleted || o.Phase == backupv1.RestoreFailed,
			fmt.Sprintf("phase %s, message %q, %s", o.Phase, o.Message, conditions(r.Status.Conditions))
	})
	return r, err
}

// bring restores a backup into the emptied target and compares the target with the source.
func (g *ground) bring(ctx context.Context, name string, e engine, source backupv1.RestoreSource) (backupv1.Restore, error) {
	if err := g.emptied(ctx, e); err != nil {
		return backupv1.Restore{}, err
	}
	if err := g.restoreFile(ctx, name, e, source, false); err != nil {
		return backupv1.Restore{}, err
	}
	r, err := g.completed(ctx, name)
	if err != nil {
		return r, err
	}
	return r, g.same(ctx, e)
}

// completed waits until a Restore has completed.
func (g *ground) completed(ctx context.Context, name string) (backupv1.Restore, error) {
	r, err := g.restored(ctx, done, name)
	if err != nil {
		return r, err
	}
	if f := r.Status.AtProvider.Failure; r.Status.AtProvider.Phase != backupv1.RestoreCompleted {
		return r, fmt.Errorf("restore %s failed: %v", name, f)
	}
	return r, nil
}

// refused waits until a Restore has failed, and checks the reason.
func (g *ground) refused(ctx context.Context, name, reason string) error {
	r, err := g.restored(ctx, done, name)
	if err != nil {
		return err
	}
	f := r.Status.AtProvider.Failure
	if r.Status.AtProvider.Phase != backupv1.RestoreFailed || f == nil || f.Reason != reason {
		return fmt.Errorf("restore %s is %s because of %v, instead of Failed because of %s", name, r.Status.AtProvider.Phase, f, reason)
	}
	return nil
}
