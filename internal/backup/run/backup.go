package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/backup/stream"
	"github.com/storeplane/storeplane/internal/text"
)

// check connects to the store and the database.
func (j *job) check(ctx context.Context) error {
	if err := j.store.Probe(ctx); err != nil {
		return err
	}
	if err := j.connect(ctx); err != nil {
		return err
	}
	if _, err := j.server.Version(ctx); err != nil {
		return err
	}
	return j.method.check(ctx, j)
}

// check checks that the databases to dump are there.
func (dumps) check(ctx context.Context, j *job) error {
	databases, err := j.databases(ctx)
	if err != nil {
		return err
	}
	for _, database := range databases {
		if _, err := j.server.Holds(ctx, database); err != nil {
			return err
		}
	}
	return nil
}

// databases returns the databases to back up: those of the Task, or else the connection's, or
// else all.
func (j *job) databases(ctx context.Context) ([]string, error) {
	if names := j.task.Database.Databases; len(names) > 0 {
		return names, nil
	}
	if named(j.task.Database.Engine, j.conn.Database) {
		return []string{j.conn.Database}, nil
	}
	names, err := j.server.Databases(ctx)
	if err == nil && len(names) == 0 {
		return nil, backup.Errorf(backup.SourceUnreachable, "the server has no database to back up, or none that the user may see")
	}
	return names, err
}

// backup creates a backup, then expires old ones and removes the remains of failed ones.
func (j *job) backup(ctx context.Context) error {
	policy, err := backup.NewPolicy(j.task.Retention, j.task.Keep, j.task.TimeZone)
	if err != nil {
		return backup.WithReason(backup.InvalidTask, err)
	}
	if err := j.connect(ctx); err != nil {
		return err
	}
	id := backup.NewID(j.Now())
	stop, err := j.store.Keep(ctx, id)
	if err != nil {
		return err
	}
	m, err := j.make(ctx, id)
	if err != nil {
		stop()
		return errors.Join(err, j.undo(ctx, id))
	}
	j.report.Backup = new(store.Item{ID: id, Manifest: m}.Entry())
	j.sayf("backup %s is in the store: %s, %s", id, text.Count(databasesIn(m), "database"), text.Count(m.Size(), "byte"))

	err = j.clean(ctx, policy, id)
	stop()
	err = errors.Join(err, j.store.Delete(ctx, id+"/"+store.RunningObject))
	if err != nil {
		return fmt.Errorf("backup %s was made, but what is old could not be deleted: %w", id, err)
	}
	return nil
}

// make creates a backup, which is complete once its manifest is written.
func (j *job) make(ctx context.Context, id string) (*backup.Manifest, error) {
	m := &backup.Manifest{
		Version: backup.ManifestVersion, ID: id, Engine: j.task.Database.Engine, Started: j.Now().UTC(),
		Compression: j.task.Compression, Recipient: j.key.Recipient(),
	}
	if m.Compression == "" {
		m.Compression = stream.Zstd
	}
	if err := j.method.fill(ctx, j, m); err != nil {
		return nil, err
	}
	if err := j.finish(ctx, m); err != nil {
		return nil, err
	}
	return m, nil
}

// finish writes the manifest of a backup whose objects are in the store.
func (j *job) finish(ctx context.Context, m *backup.Manifest) error {
	if err := j.settle(ctx, m); err != nil {
		return err
	}
	return j.complete(ctx, m)
}

// settle returns once the objects of a manifest are on the disk of the store, and all of them as they were written.
func (j *job) settle(ctx context.Context, m *backup.Manifest) error {
	// The sizes are listed again: what a store lists may differ from what it acknowledged.
	sizes, err := j.store.Sizes(ctx, m.ID)
	if err != nil {
		return err
	}
	if err := store.Compare(m, sizes); err != nil {
		return err
	}
	// The manifest makes a backup, and older ones expire for it: what it names has to be on disk before,
	// and it as well.
	return j.store.Commit()
}

// complete writes the manifest of a backup whose objects are settled. It may be in the store although there is an error.
func (j *job) complete(ctx context.Context, m *backup.Manifest) error {
	if m.Finished.IsZero() {
		m.Finished = j.Now().UTC()
	}
	if err := j.seal.Manifest(m); err != nil {
		return err
	}
	content, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the manifest: %w", err)
	}
	if err := j.store.Write(ctx, m.ID+"/"+backup.ManifestObject, append(content, '\n')); err != nil {
		return err
	}
	return j.store.Commit()
}

// fill dumps the databases.
func (dumps) fill(ctx context.Context, j *job, m *backup.Manifest) error {
	var err error
	if m.Server, err = j.server.Version(ctx); err != nil {
		return err
	}
	if m.System, err = j.server.System(ctx); err != nil {
		return err
	}
	if m.Roles, err = j.server.Roles(ctx); err != nil {
		return err
	}
	databases, err := j.databases(ctx)
	if err != nil {
		return err
	}
	for i, database := range databases {
		if err := j.notRestoring(ctx, database); err != nil {
			return err
		}
		j.sayf("dumping database %s", database)
		d, err := j.dump(ctx, m, database, fmt.Sprintf("%03d", i+1))
		if err != nil {
			return err
		}
		// A restore that began meanwhile may have emptied the database before it was read.
		if err := j.notRestoring(ctx, database); err != nil {
			return err
		}
		m.Dumps = append(m.Dumps, *d)
	}
	return nil
}

// notRestoring returns an error while a Restore writes into a database, and after one was stopped
// half-way: the dump would be of a part of a backup, and would count as the newest good one.
func (j *job) notRestoring(ctx context.Context, database string) error {
	return notRestoring(ctx, j.server, database)
}

func notRestoring(ctx context.Context, s engine.Server, database string) error {
	l, err := s.Locked(ctx, database)
	if err != nil || l == nil || !l.Began || l.Restored || l.Backup == "" {
		return err
	}
	return backup.Errorf(backup.TargetLocked, "database %s may hold a part of a backup, or nothing of what it held before: if %s runs, the next backup is made once it has completed, and else create another one, with overwrite, or remove %s in the database, if all that it holds is right", database, nameOf(l), engine.LockName)
}

// dump dumps a database into the store.
func (j *job) dump(ctx context.Context, m *backup.Manifest, database, prefix string) (*backup.Dump, error) {
	d := &backup.Dump{Database: database}
	err := j.upload(ctx, m, prefix, suffixes[m.Engine], d, func(w io.Writer) error {
		var err error
		d.Tables, err = j.server.Dump(ctx, database, w)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// upload writes what a function writes into the store, as the objects of a dump.
func (j *job) upload(ctx context.Context, m *backup.Manifest, prefix, suffix string, d *backup.Dump, write func(io.Writer) error) error {
	w, err := stream.NewWriter(ctx, j.store, m.ID, stream.Options{
		Compression: m.Compression, Key: j.key, ObjectSize: j.ObjectSize, Prefix: prefix, Suffix: suffix,
	})
	if err != nil {
		return err
	}
	if err := write(w); err != nil {
		w.Abort()
		return err
	}
	d.Objects, d.Bytes, err = w.Finish()
	return err
}

// undo removes the remains of a failed backup, even if the pod is being stopped.
func (j *job) undo(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer cancel()
	if err := j.store.Remove(ctx, id); err != nil {
		// The next backup removes it. The error to report is that of the backup.
		j.sayf("cannot remove what the backup left: %v", err)
	}
	return nil
}

// clean removes expired backups from the store, and the remains of killed pods.
func (j *job) clean(ctx context.Context, policy backup.Policy, own string) error {
	l, err := j.store.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	gone := map[string]bool{}
	for _, id := range expired(policy, l, j.Now()) {
		read, err := j.store.IsRead(ctx, id, own)
		if read {
			j.sayf("backup %s has expired, and is kept until the pod that reads it has ended", id)
			continue
		}
		if err == nil {
			err = j.store.Remove(ctx, id)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		j.sayf("backup %s has expired", id)
		gone[id] = true
	}
	j.report.Expired = len(gone)
	l.Items = slices.DeleteFunc(l.Items, func(i store.Item) bool { return gone[i.ID] })
	j.report.Catalog = catalog(l)
	errs = append(errs, j.store.RemoveDead(ctx, own, l.Unfinished), j.method.expire(ctx, j, l))
	return errors.Join(errs...)
}

// delete deletes all backups.
func (j *job) delete(ctx context.Context) error {
	return errors.Join(j.method.delete(ctx, j), j.store.RemoveAll(ctx))
}

// expire does nothing: there is nothing beside dumps.
func (dumps) expire(context.Context, *job, *store.Listing) error { return nil }

// delete does nothing: there is nothing beside dumps.
func (dumps) delete(context.Context, *job) error { return nil }
