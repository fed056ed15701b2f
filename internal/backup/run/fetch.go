package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// Fetch unpacks a physical backup of MySQL into a folder, which must not exist, and returns its manifest. The folder
// is complete, or does not exist. The backup is the one that the Task chooses by its ID or Time, or else the newest: of
// System, if the Task has one, and if not, the backups must be of one system.
//
// The backup does not expire until unpin is called, or ctx ends: binary logs expire with it that ReplayLogs applies to a
// server once that has started.
//
// Source, Scratch, Socket and Report of the Program are not used.
func (p *Program) Fetch(ctx context.Context, t backup.Task, folder string) (m *backup.Manifest, unpin func(), err error) {
	t.Action = backup.Restore
	hide := secrets{}
	hide.addFolder(p.Store)
	hide.addFile(p.Key)
	log := &lines{to: p.Log, hide: &hide}
	defer log.flush()
	j := &job{Program: p, task: t, method: methodOf(t), hide: &hide, log: log}
	defer j.close()
	m, unpin, err = j.fetch(ctx, folder)
	if err == nil {
		return m, unpin, nil
	}
	reason := backup.ReasonOf(backup.WithReason(backup.ToolFailed, err))
	if ctx.Err() != nil {
		reason = backup.Interrupted
	}
	return nil, nil, backup.Errorf(reason, "%s", hide.in(oneLine(err.Error())))
}

func (j *job) fetch(ctx context.Context, folder string) (m *backup.Manifest, unpin func(), err error) {
	if j.task.Method != backupv1.Physical || byPgBackRest(j.task) {
		return nil, nil, backup.Errorf(backup.InvalidTask, "cannot unpack backups of method %q of engine %q: only physical ones of MySQL are the files of a server", j.task.Method, j.task.Database.Engine)
	}
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return nil, nil, unusable(err)
		}
		return nil, nil, backup.Errorf(backup.InvalidTask, "cannot unpack a backup into %s: it exists", folder)
	}
	if err := j.open(ctx); err != nil {
		return nil, nil, err
	}
	item, err := j.choose(ctx)
	if err != nil {
		return nil, nil, err
	}
	if at := j.task.Time; at != nil && timeOf(item).Truncate(time.Second).After(*at) {
		return nil, nil, backup.Errorf(backup.InvalidTask, "backup %s was complete at %s, which is after the time to restore to: create the claim again with the id of an older one, or without an id", item.ID, timeOf(item).UTC().Format("2006-01-02 15:04:05 MST"))
	}
	if j.Accept != nil {
		if err := j.Accept(item.Manifest); err != nil {
			return nil, nil, err
		}
	}
	if unpin, err = j.pinCopy(ctx, item.ID); err != nil {
		return nil, nil, err
	}
	if err := j.unpackTo(ctx, item.Manifest, folder); err != nil {
		unpin()
		return nil, nil, err
	}
	return item.Manifest, unpin, nil
}

// pinCopy keeps a physical backup from expiring until the returned function is called, also after the job has ended.
func (j *job) pinCopy(ctx context.Context, id string) (unpin func(), err error) {
	copies := *j
	if copies.store, err = j.storeOf(ctx, backupv1.Physical); err != nil {
		return nil, err
	}
	stop := copies.pin(ctx, id)
	return sync.OnceFunc(func() {
		stop()
		_ = copies.store.Close()
	}), nil
}

// unpackTo unpacks a copy into a folder that exists once all of it is on the disk.
func (j *job) unpackTo(ctx context.Context, m *backup.Manifest, folder string) error {
	parent, err := os.OpenRoot(filepath.Dir(folder))
	if err != nil {
		return unusable(err)
	}
	defer func() { _ = parent.Close() }()
	name := filepath.Base(folder)
	part := name + partSuffix
	// It is what was left by a program that was killed.
	if err := parent.RemoveAll(part); err != nil {
		return unusable(err)
	}
	if err := j.unpack(ctx, m, parent, part, true); err != nil {
		if e := parent.RemoveAll(part); e != nil {
			j.sayf("cannot remove what was unpacked: %v", e)
		}
		return err
	}
	if err := parent.Rename(part, name); err != nil {
		return unusable(err)
	}
	f, err := parent.Open(".")
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return unusable(fmt.Errorf("not all that was unpacked is on its disk: %w", err))
	}
	return nil
}
