//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// prepared starts a store and an engine's source with its data.
func (g *ground) prepared(ctx context.Context, e engine, s backupv1.StoreType) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	if err := g.store(ctx, s); err != nil {
		return err
	}
	return g.loaded(ctx, e)
}

// backedUp backs up an engine's source to a volume and empties its target.
func (g *ground) backedUp(ctx context.Context, e engine, name string) error {
	if err := g.prepared(ctx, e, backupv1.Volume); err != nil {
		return err
	}
	if err := g.file(ctx, name, g.parameters(e, backupv1.Volume)); err != nil {
		return err
	}
	if _, err := g.succeed(ctx, name); err != nil {
		return err
	}
	return g.emptied(ctx, e)
}

// encrypts checks that backups are encrypted for a key, and that only that key restores them.
func (g *ground) encrypts(ctx context.Context, _ notes) error {
	e := engines[0]
	if err := g.prepared(ctx, e, backupv1.Volume); err != nil {
		return err
	}
	for _, name := range []string{"age-key", "age-other-key"} {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			return fmt.Errorf("cannot make a key: %w", err)
		}
		if err := g.secret(ctx, name, map[string]string{"identity": identity.String() + "\n"}); err != nil {
			return err
		}
	}
	key := func(name string) *backupv1.Encryption {
		return &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: name, Key: "identity"}}
	}
	const name = "encrypted"
	plain := func(p *backupv1.BackupParameters) { p.Compression = "none" }
	if err := g.file(ctx, name, g.parameters(e, backupv1.Volume, verified, plain, func(p *backupv1.BackupParameters) { p.Encryption = key("age-key") })); err != nil {
		return err
	}
	id, err := g.succeed(ctx, name)
	if err != nil {
		return err
	}
	if err := g.proven(ctx, name, id); err != nil {
		return err
	}
	if err := g.hidden(ctx, g.backup(name).Status.AtProvider.Location, id); err != nil {
		return err
	}
	if _, err := g.bring(ctx, "decrypted", e, from(name)); err != nil {
		return err
	}

	// Restore from the location without the Backup, with the wrong key and with the right one.
	at := func(secret string) backupv1.RestoreSource {
		return backupv1.RestoreSource{Location: &backupv1.Location{Destination: g.destination(backupv1.Volume, e), Name: name, Encryption: key(secret)}}
	}
	if err := g.emptied(ctx, e); err != nil {
		return err
	}
	if err := g.restoreFile(ctx, "wrong-key", e, at("age-other-key"), false); err != nil {
		return err
	}
	if err := g.refused(ctx, "wrong-key", "KeyMissing"); err != nil {
		return err
	}
	_, err = g.bring(ctx, "right-key", e, at("age-key"))
	return err
}

// hidden checks that a word of the data is not found in the store's files.
func (g *ground) hidden(ctx context.Context, location, id string) error {
	files, err := g.all(ctx, backupv1.Volume, path.Join(location, id))
	if err != nil {
		return err
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".json") {
			continue
		}
		found, err := g.data(ctx, "", "grep", "customer 1", f)
		if err != nil {
			return err
		}
		if strings.TrimSpace(found) != "0" {
			return fmt.Errorf("%s has the data in plain text", f)
		}
	}
	return nil
}

// overwrites checks that data of a target is overwritten only if the Restore requests it.
func (g *ground) overwrites(ctx context.Context, _ notes) error {
	for _, e := range engines {
		name := "overwrite-" + string(e.name)
		if err := g.backedUp(ctx, e, name); err != nil {
			return err
		}
		if _, err := g.data(ctx, g.uri(e, e.target()), "load", string(e.name), "--rows", "1000"); err != nil {
			return err
		}
		before, err := g.sum(ctx, e, e.target())
		if err != nil {
			return err
		}
		if err := g.restoreFile(ctx, name+"-refused", e, from(name), false); err != nil {
			return err
		}
		if err := g.refused(ctx, name+"-refused", "TargetNotEmpty"); err != nil {
			return err
		}
		after, err := g.sum(ctx, e, e.target())
		if err != nil {
			return err
		}
		if err := difference(before, after); err != nil {
			return fmt.Errorf("a refused restore changed its target: %w", err)
		}
		if err := g.restoreFile(ctx, name+"-forced", e, from(name), true); err != nil {
			return err
		}
		if _, err := g.completed(ctx, name+"-forced"); err != nil {
			return err
		}
		if err := g.same(ctx, e); err != nil {
			return err
		}
		// A Restore runs once, and a change does not run it again.
		_, err = cluster.Patch(ctx, "Restore", g.namespace, name+"-forced", harness.Patch{"spec": harness.Patch{"forProvider": harness.Patch{"overwrite": false}}})
		if err == nil || !strings.Contains(err.Error(), "a Restore that has started cannot be changed") {
			return fmt.Errorf("a Restore that has run can be changed: %w", err)
		}
	}
	return nil
}

// chooses checks restores of a backup by ID, by time, and of the newest one.
func (g *ground) chooses(ctx context.Context, _ notes) error {
	e := engines[0]
	if err := g.prepared(ctx, e, backupv1.Volume); err != nil {
		return err
	}
	const name = "choice"
	if err := g.file(ctx, name, g.parameters(e, backupv1.Volume)); err != nil {
		return err
	}
	first, err := g.succeed(ctx, name)
	if err != nil {
		return err
	}
	uri := g.uri(e, e.source())
	if _, err := g.data(ctx, uri, "exec", string(e.name), "CREATE TABLE later (n int); INSERT INTO later VALUES (1)"); err != nil {
		return err
	}
	defer func() {
		_, _ = g.data(context.WithoutCancel(ctx), uri, "exec", string(e.name), "DROP TABLE IF EXISTS later")
	}()
	second, err := g.succeed(ctx, name)
	if err != nil {
		return err
	}
	entries := g.backup(name).Status.AtProvider.Backups
	firstTime := entries[slices.IndexFunc(entries, func(b backupv1.BackupEntry) bool { return b.ID == first })].Time

	location := &backupv1.Location{Destination: g.destination(backupv1.Volume, e), Name: name}
	if err := cluster.Delete(ctx, "Backup", g.namespace, name); err != nil {
		return err
	}
	if err := g.world.AwaitGone(ctx, done, "Backup", name); err != nil {
		return err
	}
	if _, err := g.bring(ctx, "by-id", e, backupv1.RestoreSource{Location: location, ID: first}); err != nil {
		return err
	}
	byTime := backupv1.RestoreSource{Location: location, Time: new(metav1.NewTime(firstTime.Time))}
	r, err := g.bring(ctx, "by-time", e, byTime)
	if err != nil {
		return err
	}
	if r.Status.AtProvider.Backup != first {
		return fmt.Errorf("for %s backup %s was chosen instead of %s", firstTime, r.Status.AtProvider.Backup, first)
	}
	if err := g.emptied(ctx, e); err != nil {
		return err
	}
	for restore, source := range map[string]backupv1.RestoreSource{
		"no-such-id": {Location: location, ID: "20200101T000000Z-none"},
		"too-early":  {Location: location, Time: new(metav1.NewTime(firstTime.AddDate(-1, 0, 0)))},
	} {
		if err := g.restoreFile(ctx, restore, e, source, false); err != nil {
			return err
		}
		if err := g.refused(ctx, restore, "BackupMissing"); err != nil {
			return err
		}
	}
	// The newest backup contains what was written later.
	if err := g.restoreFile(ctx, "newest", e, backupv1.RestoreSource{Location: location}, false); err != nil {
		return err
	}
	r, err = g.completed(ctx, "newest")
	if err != nil {
		return err
	}
	if r.Status.AtProvider.Backup != second {
		return fmt.Errorf("backup %s was restored as the newest instead of %s", r.Status.AtProvider.Backup, second)
	}
	return nil
}

// retains checks which backups expire. Old backups are copies of a new one with other times.
func (g *ground) retains(ctx context.Context, _ notes) error {
	e := engines[0]
	if err := g.prepared(ctx, e, backupv1.Volume); err != nil {
		return err
	}
	const name = "retained"
	if err := g.file(ctx, name, g.parameters(e, backupv1.Volume, func(p *backupv1.BackupParameters) { p.Retention = "7d" })); err != nil {
		return err
	}
	id, err := g.succeed(ctx, name)
	if err != nil {
		return err
	}
	folder := path.Join("/data", g.backup(name).Status.AtProvider.Location)
	old := map[int]string{}
	for _, days := range []int{6, 8, 40} {
		out, err := g.data(ctx, "", "age", path.Join(folder, id), strconv.Itoa(days))
		if err != nil {
			return err
		}
		old[days] = strings.TrimSpace(out)
	}
	// A backup without a manifest, as a pod that was killed long ago leaves behind.
	left, err := g.data(ctx, "", "age", path.Join(folder, id), "9")
	if err != nil {
		return err
	}
	if _, err := g.data(ctx, "", "rm", path.Join(folder, strings.TrimSpace(left), "manifest.json")); err != nil {
		return err
	}
	second, err := g.succeed(ctx, name)
	if err != nil {
		return err
	}
	have, err := g.folders(ctx, backupv1.Volume, g.backup(name).Status.AtProvider.Location)
	if err != nil {
		return err
	}
	want := []string{old[6], id, second}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		return fmt.Errorf("the store has %v, want %v", have, want)
	}
	return g.whole(ctx, backupv1.Volume, name)
}

// deletes checks that data is deleted only if deletionPolicy requests it.
func (g *ground) deletes(ctx context.Context, _ notes) error {
	e, s := engines[0], backupv1.S3
	if err := g.prepared(ctx, e, s); err != nil {
		return err
	}
	const name = "deleted"
	deleting := func(p *backupv1.BackupParameters) { p.DeletionPolicy = backupv1.Delete }
	if err := g.file(ctx, name, g.parameters(e, s, deleting)); err != nil {
		return err
	}
	if _, err := g.succeed(ctx, name); err != nil {
		return err
	}
	location := g.backup(name).Status.AtProvider.Location
	if err := g.remove(ctx, name); err != nil {
		return err
	}
	left, err := g.all(ctx, s, location)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("the store still has %v", left)
	}

	// A store that is gone does not block the deletion forever.
	if err := g.file(ctx, name, g.parameters(e, s, deleting)); err != nil {
		return err
	}
	if _, err := g.succeed(ctx, name); err != nil {
		return err
	}
	if err := g.scaleS3(ctx, 0); err != nil {
		return err
	}
	if err := cluster.Delete(ctx, "Backup", g.namespace, name); err != nil {
		return errors.Join(err, g.scaleS3(ctx, 1))
	}
	err = g.awaitBackup(ctx, givenUp, name, "to say that it cannot delete", func(b backupv1.Backup) bool {
		return is(b, "Synced", "False", "")
	})
	if err == nil {
		_, err = cluster.Patch(ctx, "Backup", g.namespace, name, harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{backupv1.ReleaseAnnotation: "true"}}})
	}
	if err == nil {
		err = g.world.AwaitGone(ctx, soon, "Backup", name)
	}
	return errors.Join(err, g.scaleS3(ctx, 1))
}
