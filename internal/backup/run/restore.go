package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/backup/stream"
)

// restore restores a backup into the Task's database. The target is unchanged until all that can
// be checked before has been.
func (dumps) restore(ctx context.Context, j *job) error {
	if err := j.connect(ctx); err != nil {
		return err
	}
	if err := j.patiently(ctx, func() error { return j.accepts(ctx) }); err != nil {
		return err
	}
	item, err := j.choose(ctx)
	if err != nil {
		return err
	}
	defer j.pin(ctx, item.ID)()
	dumps, to, err := j.targets(item.Manifest)
	if err != nil {
		return err
	}
	var databases []string
	for _, d := range dumps {
		databases = append(databases, to[d.Database])
	}
	var h *hold
	err = j.patiently(ctx, func() error {
		h, err = j.lock(ctx, item.ID, databases)
		return err
	})
	if err != nil {
		return err
	}
	rows, err := j.resume(h, item, dumps, to)
	if err != nil {
		h.wipe(ctx.Err() != nil || slices.Contains(passing, backup.ReasonOf(err)))
	}
	if lost := h.release(); lost != nil {
		return lost
	}
	j.report.Rows = rows
	return err
}

// accepts returns an error if the server denies the user. The database need not exist: it is created.
func (j *job) accepts(ctx context.Context) error {
	if _, err := j.server.Version(ctx); backup.ReasonOf(err) == backup.SourceDenied {
		return err
	}
	return nil
}

// patiently calls do again, twice within RetryFor, while the database denies it to the user: one that is
// created together with the Restore may not have its password or its privileges yet, and a Restore that has
// failed is not retried. A database may lock users whose passwords are wrong too often.
func (j *job) patiently(ctx context.Context, do func() error) error {
	err := do()
	for _, pause := range []time.Duration{j.RetryFor / 8, j.RetryFor / 2} {
		if backup.ReasonOf(err) != backup.SourceDenied || wait(ctx, pause) != nil {
			return err
		}
		err = do()
	}
	return err
}

// resume writes a backup into databases that are locked, or goes on with the one that an earlier pod of
// this Restore began with.
func (j *job) resume(h *hold, item store.Item, dumps []backup.Dump, to map[string]string) (int64, error) {
	id := h.backup()
	if id == "" || id == item.ID {
		return j.write(h, item.Manifest, dumps, to)
	}
	j.sayf("going on with backup %s, of which an earlier pod has restored some databases", id)
	j.task.ID = id
	item, err := j.choose(h.ctx)
	if err != nil {
		return 0, err
	}
	defer j.pin(h.ctx, id)()
	if dumps, to, err = j.targets(item.Manifest); err != nil {
		return 0, err
	}
	for _, d := range dumps {
		if !h.has(to[d.Database]) {
			return 0, backup.Errorf(backup.InvalidTask, "backup %s, of which some databases are restored, has database %s, and a newer one has not: create another Restore that names its id and databases", id, d.Database)
		}
	}
	return j.write(h, item.Manifest, dumps, to)
}

// targets returns which dumps of a backup are restored, and into which databases.
func (j *job) targets(m *backup.Manifest) ([]backup.Dump, map[string]string, error) {
	wanted := j.task.Database.Databases
	if len(wanted) == 0 && named(j.task.Database.Engine, j.conn.Database) {
		wanted = []string{j.conn.Database}
	}
	return targets(m, wanted)
}

// pin keeps a backup from expiring until the returned function is called: it is read twice, and the
// target is emptied in between. Credentials that may only read are enough for a restore, but keep no
// other pod from deleting the backup.
func (j *job) pin(ctx context.Context, id string) (stop func()) {
	stop, err := j.store.Pin(ctx, id)
	if err != nil {
		j.sayf("backup %s may expire while it is read, since this cannot be noted in its folder: %v", id, err)
		return func() {}
	}
	return stop
}

// write writes a backup into databases that are locked.
func (j *job) write(h *hold, m *backup.Manifest, dumps []backup.Dump, to map[string]string) (int64, error) {
	if _, err := j.held(h, dumps, to); err != nil {
		return 0, err
	}
	for _, d := range dumps {
		if h.of(to[d.Database]).whole {
			continue
		}
		j.sayf("reading the backup of database %s to see that it is whole", d.Database)
		if err := stream.Check(h.ctx, j.store, m.ID, d.Objects); err != nil {
			return 0, err
		}
	}
	// To read a backup takes long: an application may have written meanwhile.
	full, err := j.held(h, dumps, to)
	if err != nil {
		return 0, err
	}
	if err := h.begin(m.ID); err != nil {
		return 0, err
	}
	var rows int64
	for _, d := range dumps {
		l := h.of(to[d.Database])
		// Each just before it is restored: if one cannot be, those after it are as they were.
		if err := j.clear(h, l, slices.Contains(full, l.database)); err != nil {
			return 0, err
		}
		n, err := j.writeOne(h, m, d, l)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

// clear drops what a database holds that is restored next.
func (j *job) clear(h *hold, l *held, full bool) error {
	if l.whole {
		return nil
	}
	if full {
		j.sayf("dropping what database %s holds", l.database)
		err := j.server.Clear(h.ctx, l.database)
		l.overwritten = j.task.Overwrite && !errors.Is(err, engine.ErrUnchanged)
		if err != nil {
			return err
		}
	}
	l.cleared = true
	return nil
}

// writeOne restores a dump into a database that is locked, and compares and returns how many rows it
// has. From the moment at which it is whole it is neither dropped nor restored again: other clients
// may write into it.
func (j *job) writeOne(h *hold, m *backup.Manifest, d backup.Dump, l *held) (int64, error) {
	if l.whole {
		j.sayf("database %s was restored by an earlier pod of this Restore, and is left as it is", l.database)
		j.report.Databases = append(j.report.Databases, l.database)
		return d.Rows(), nil
	}
	j.sayf("restoring database %s", l.database)
	if err := j.restoreOne(h.ctx, j.server, m, d, l.database); err != nil {
		l.partial = leavesPart(err)
		if backup.ReasonOf(err) == backup.TargetNotEmpty {
			err = backup.Errorf(backup.TargetNotEmpty, "database %s was written to by another client while it was restored, and is left as it is: stop that client, and create another Restore, with overwrite: %w", l.database, err)
		}
		return 0, err
	}
	if err := h.restored(l); err != nil {
		return 0, err
	}
	n, err := j.compare(h.ctx, j.server, d, l.database)
	if err != nil && backup.ReasonOf(err) != backup.ContentDiffers {
		err = fmt.Errorf("database %s has all of the backup, and is left as it is: %w", l.database, err)
	}
	return n, err
}

// leavesPart reports whether a restore that failed has left a part of a backup, and no other client
// has written beside it: what others wrote may be acknowledged to users, and is not dropped.
func leavesPart(err error) bool {
	reason := backup.ReasonOf(err)
	return err != nil && !errors.Is(err, engine.ErrUnchanged) && reason != backup.TargetNotEmpty && reason != backup.ContentDiffers
}

// targets returns which dumps are restored, and into which databases. If there is one dump and
// one database, their names may differ.
func targets(m *backup.Manifest, wanted []string) ([]backup.Dump, map[string]string, error) {
	to := map[string]string{}
	if len(wanted) == 1 && len(m.Dumps) == 1 {
		to[m.Dumps[0].Database] = wanted[0]
		return m.Dumps, to, nil
	}
	var dumps []backup.Dump
	var names []string
	for _, d := range m.Dumps {
		names = append(names, d.Database)
		to[d.Database] = d.Database
		if len(wanted) == 0 || slices.Contains(wanted, d.Database) {
			dumps = append(dumps, d)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return nil, nil, backup.Errorf(backup.InvalidTask, "backup %s has no database %s, but %s", m.ID, name, strings.Join(names, ", "))
		}
	}
	return dumps, to, nil
}

// held returns the targets that hold something, or an error if that must not be dropped. It may
// be if Overwrite is set, or if an earlier pod of this Restore left it there.
func (j *job) held(h *hold, dumps []backup.Dump, to map[string]string) ([]string, error) {
	var full []string
	for _, d := range dumps {
		database := to[d.Database]
		what, err := j.server.Holds(h.ctx, database)
		if err != nil && !errors.Is(err, engine.ErrNoDatabase) {
			return nil, err
		}
		if what == "" {
			continue
		}
		l := h.of(database)
		if !j.task.Overwrite && !l.resumes {
			switch {
			case l.before == nil || !l.before.Began:
			case l.before.Restored:
				what += ", which " + nameOf(l.before) + " restored"
			default:
				what += ", which " + nameOf(l.before) + " left there when it was stopped half-way"
			}
			return nil, backup.Errorf(backup.TargetNotEmpty, "database %s is not empty: it holds %s. Set overwrite to drop what it holds", database, what)
		}
		full = append(full, database)
	}
	return full, nil
}

// wipe drops what a failed restore left, even if the pod is being stopped: half a database must
// not be taken for a whole one. A database that another restore has locked meanwhile is left
// alone. If the Restore is tried again, the locks of whole databases stay for its next pod. That of
// a database whose content was dropped for a backup that is not there stays too: a Backup would take
// what is left for all of it.
func (h *hold) wipe(again bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), cleanUpWithin)
	defer cancel()
	for _, l := range h.locks {
		l.stays = l.whole && again || l.overwritten && !l.whole
		if l.stays && !l.lock.Restored {
			// To renew it records that. Where even that fails, the next pod restores it again.
			_ = h.ours(ctx, l)
		}
		if !l.partial || !h.ours(ctx, l) {
			continue
		}
		if err := h.job.server.Clear(ctx, l.database); err != nil {
			h.job.sayf("cannot drop what the restore left in database %s: %v", l.database, err)
			l.stays = true
		}
	}
}

// A counting is a reader that counts the bytes of a dump.
type counting struct {
	r   io.Reader
	n   int64
	eof bool
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.eof = c.eof || errors.Is(err, io.EOF)
	return n, err
}

// finish reads the rest, and checks that the dump has its original size.
func (c *counting) finish(d backup.Dump) error {
	if !c.eof {
		if _, err := io.Copy(io.Discard, c); err != nil {
			return err
		}
	}
	if c.n != d.Bytes {
		return backup.Errorf(backup.BackupCorrupt, "the dump of database %s has %d bytes, and had %d when it was written", d.Database, c.n, d.Bytes)
	}
	return nil
}
