package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/backup/stream"
	"github.com/storeplane/storeplane/internal/text"
)

// verify restores a backup into a throw-away database, and checks that all data is there.
func (j *job) verify(ctx context.Context) error {
	item, err := j.choose(ctx)
	if err != nil {
		return err
	}
	defer j.pin(ctx, item.ID)()
	rows, err := j.method.tryOut(ctx, j, item.Manifest)
	if err != nil {
		// The backup no longer counts as verified.
		if backup.ReasonOf(err) == backup.BackupCorrupt {
			if e := j.store.Delete(ctx, item.ID+"/"+backup.VerificationObject); e != nil {
				j.sayf("cannot delete the record that it was verified: %v", e)
			}
		}
		return err
	}
	v := backup.Verification{Time: j.Now().UTC(), Rows: rows}
	if err := j.seal.Verification(&v, item.ID); err != nil {
		return err
	}
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode the verification: %w", err)
	}
	if err := j.store.Write(ctx, item.ID+"/"+backup.VerificationObject, append(content, '\n')); err != nil {
		return err
	}
	item.Verified = &v.Time
	j.report.Backup = new(item.Entry())
	j.report.Rows = rows
	return nil
}

// choose returns the backup of the Task.
func (j *job) choose(ctx context.Context) (store.Item, error) {
	l, err := j.store.List(ctx)
	if err != nil {
		return store.Item{}, err
	}
	for _, item := range l.Items {
		switch {
		case accepted(item, j.task):
			j.sayf("backup %s has no seal, and is accepted by acceptUnsealed", item.ID)
		case foreign(item.Err):
			j.sayf("backup %s is skipped: %v", item.ID, item.Err)
		}
	}
	item, err := choose(l, j.task)
	if err != nil {
		return store.Item{}, err
	}
	j.report.Backup = new(item.Entry())
	m := item.Manifest
	if m.Engine != j.task.Database.Engine {
		return store.Item{}, backup.Errorf(backup.InvalidTask, "backup %s is of type %s, and the database of type %s", m.ID, m.Engine, j.task.Database.Engine)
	}
	if method := cmp.Or(j.task.Method, backupv1.Logical); m.MethodOf() != method {
		return store.Item{}, backup.Errorf(backup.InvalidTask, "backup %s is of method %s, and lies among those of method %s: remove it from there", m.ID, m.MethodOf(), method)
	}
	j.sayf("taking backup %s: %s, %s", m.ID, text.Count(databasesIn(m), "database"), text.Count(m.Size(), "byte"))
	return item, nil
}

// tryOut restores the dumps of a backup, and returns how many rows they have.
func (dumps) tryOut(ctx context.Context, j *job, m *backup.Manifest) (int64, error) {
	remote := engine.Remote{Dir: j.Socket, Scratch: j.Scratch}
	if err := remote.Await(ctx); err != nil {
		return 0, err
	}
	server, err := attach(ctx, m.Engine, remote, m.Roles, j.log)
	if err != nil {
		return 0, err
	}
	defer server.Close()
	rows, err := j.restoreAll(ctx, server, m)
	if err != nil {
		return 0, j.culprit(ctx, m, server.Failed(err))
	}
	if j.task.Query == "" {
		return rows, nil
	}
	database := j.task.QueryDatabase
	if database == "" && len(m.Dumps) > 0 {
		database = m.Dumps[0].Database
	}
	return rows, server.Query(ctx, database, j.task.Query)
}

// culprit returns the cause of a failed restore: a tool that reads damaged data may fail before
// the end of the object shows that it differs from what was written.
func (j *job) culprit(ctx context.Context, m *backup.Manifest, err error) error {
	if backup.ReasonOf(err) != backup.ToolFailed {
		return err
	}
	for _, d := range m.Dumps {
		if e := stream.Check(ctx, j.store, m.ID, d.Objects); backup.ReasonOf(e) == backup.BackupCorrupt {
			return e
		}
	}
	return err
}

// restoreAll restores the dumps of a backup, and returns how many rows they have.
func (j *job) restoreAll(ctx context.Context, server engine.Server, m *backup.Manifest) (int64, error) {
	var rows int64
	for _, d := range m.Dumps {
		n, err := j.restoreTo(ctx, server, m, d, d.Database)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

// restoreTo restores a dump into an empty database, and compares and returns how many rows it has.
func (j *job) restoreTo(ctx context.Context, server engine.Server, m *backup.Manifest, d backup.Dump, database string) (int64, error) {
	j.sayf("restoring database %s", database)
	if err := j.restoreOne(ctx, server, m, d, database); err != nil {
		return 0, err
	}
	return j.compare(ctx, server, d, database)
}

// compare compares how many rows a restored database has with those of its dump, and returns them.
func (j *job) compare(ctx context.Context, server engine.Server, d backup.Dump, database string) (int64, error) {
	got, err := server.Count(ctx, database)
	if err != nil {
		return 0, err
	}
	n, err := engine.Compare(database, d.Tables, got)
	if err != nil {
		return 0, err
	}
	j.report.Databases = append(j.report.Databases, database)
	return n, nil
}

func (j *job) restoreOne(ctx context.Context, server engine.Server, m *backup.Manifest, d backup.Dump, database string) error {
	r, err := stream.NewReader(ctx, j.store, m.ID, d.Objects, m.Compression, m.Recipient, j.key)
	if err != nil {
		return err
	}
	defer r.Close()
	counted := &counting{r: r}
	if err := server.Restore(ctx, d.Database, database, counted); err != nil {
		return err
	}
	// A tool may end before it has read all, and what it did not read has not been checked.
	return counted.finish(d)
}
