package run

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/stream"
)

// restore restores a backup into the Task's database. The target is unchanged until all that can
// be checked before has been.
func (j *job) restore(ctx context.Context) error {
	item, err := j.choose(ctx)
	if err != nil {
		return err
	}
	m := item.Manifest
	if err := j.connect(ctx); err != nil {
		return err
	}
	wanted := j.task.Database.Databases
	if len(wanted) == 0 && named(j.task.Database.Engine, j.conn.Database) {
		wanted = []string{j.conn.Database}
	}
	dumps, to, err := targets(m, wanted)
	if err != nil {
		return err
	}
	var databases []string
	for _, d := range dumps {
		databases = append(databases, to[d.Database])
	}
	h, err := j.lock(ctx, databases)
	if err != nil {
		return err
	}
	rows, err := j.write(h, m, dumps, to)
	if err != nil {
		h.wipe()
	}
	if lost := h.release(); lost != nil {
		return lost
	}
	j.report.Rows = rows
	return err
}

// write writes a backup into databases that are locked.
func (j *job) write(h *hold, m *backup.Manifest, dumps []backup.Dump, to map[string]string) (int64, error) {
	if _, err := j.held(h, dumps, to); err != nil {
		return 0, err
	}
	for _, d := range dumps {
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
	if err := h.begin(); err != nil {
		return 0, err
	}
	for _, l := range h.locks {
		if slices.Contains(full, l.database) {
			j.sayf("dropping what database %s holds", l.database)
			if err := j.server.Clear(h.ctx, l.database); err != nil {
				return 0, err
			}
		}
		l.cleared = true
	}
	var rows int64
	for _, d := range dumps {
		database := to[d.Database]
		n, err := j.restoreTo(h.ctx, j.server, m, d, database)
		h.of(database).partial, h.of(database).whole = leavesPart(err), err == nil
		if backup.ReasonOf(err) == backup.TargetNotEmpty {
			err = backup.Errorf(backup.TargetNotEmpty, "database %s was written to by another client while it was restored, and is left as it is: stop that client, and create another Restore, with overwrite: %w", database, err)
		}
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
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
			if l.before != nil && l.before.Began {
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
// alone.
func (h *hold) wipe() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), cleanUpWithin)
	defer cancel()
	for _, l := range h.locks {
		l.stays = l.whole
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
