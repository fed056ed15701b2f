// Package physical is the part of the program backup that handles the physical backups of a
// DatabaseCluster: pgBackRest creates, verifies, restores and deletes them.
package physical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// processes is how many processes copy files at once.
const processes = 2

// places are the files and folders that the program uses.
type places struct {
	Shared

	store, key, tmp string

	// path overrides the path of the repository, unless empty.
	path string

	// servers override those of the Task, unless nil.
	servers []pgbackrest.Server
}

// Run executes a Task, and returns its report.
func Run(ctx context.Context, task backup.Task) backup.Report {
	return run(ctx, task, places{
		store: backup.StoreDir, key: backup.KeyFile, tmp: os.TempDir(),
		Shared: Shared{Scratch: backup.ScratchDir, Socket: backup.SocketDir, Archive: backup.ArchiveDir},
	}, os.Stderr, time.Now)
}

// A job is a Task in progress.
type job struct {
	task   backup.Task
	places places
	tool   pgbackrest.Tool
	log    io.Writer
	now    func() time.Time
	report *backup.Report

	// retryFor is how long errors of the archive are retried, or 0 for the default of package
	// recovery.
	retryFor time.Duration

	// lookAgain is the pause before the archive is listed again, or 0 for the default.
	lookAgain time.Duration

	// markEvery is how often marks of verified backups are read during a backup, or 0 for the default.
	markEvery time.Duration
}

func fail(reason backup.Reason, err error) error { return &backup.Error{Reason: reason, Err: err} }

func run(ctx context.Context, task backup.Task, p places, log io.Writer, now func() time.Time) backup.Report {
	report := backup.Report{Action: task.Action, Started: now().UTC(), Place: task.Place()}
	j := &job{task: task, places: p, log: log, now: now, report: &report}
	err := j.prepare()
	if err == nil {
		defer func() { _ = os.RemoveAll(filepath.Dir(j.tool.ConfigFile)) }()
		err = j.act(ctx)
	}
	report.Finished = now().UTC()
	if err != nil {
		reason := reasonOf(err)
		if ctx.Err() != nil {
			// Whatever failed may have failed because of that.
			reason = backup.Interrupted
		}
		report.Failure = &backup.Failure{Reason: reason, Message: err.Error()}
	}
	return report
}

func reasonOf(err error) backup.Reason {
	switch r := backup.ReasonOf(err); {
	case r != "":
		return r
	case errors.Is(err, pgbackrest.ErrCorrupt):
		return backup.BackupCorrupt
	case errors.Is(err, pgbackrest.ErrNone):
		return backup.BackupMissing
	}
	return pgbackrest.ReasonOf(err)
}

// prepare writes pgBackRest's configuration, and reads the credentials.
func (j *job) prepare() error {
	t := j.task
	repo := pgbackrest.Repository{Destination: t.Destination, Namespace: t.Namespace, Name: t.Name, Encrypted: t.Encrypted}
	config, err := repo.Config()
	if err != nil {
		return fail(backup.InvalidTask, fmt.Errorf("cannot use the destination: %w", err))
	}
	env, err := pgbackrest.Environment(t.Destination, t.Encrypted, pgbackrest.Credentials{StoreDir: j.places.store, KeyFile: j.places.key})
	if err != nil {
		return fail(backup.KeyMissing, err)
	}
	if j.places.path != "" {
		env = append(env, "PGBACKREST_REPO1_PATH="+j.places.path)
	}
	dir, err := os.MkdirTemp(j.places.tmp, "pgbackrest")
	if err != nil {
		return fail(backup.NoSpace, fmt.Errorf("cannot make a folder for the configuration: %w", err))
	}
	file := filepath.Join(dir, pgbackrest.FileConfig)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return fail(backup.NoSpace, fmt.Errorf("cannot write the configuration: %w", err))
	}
	j.tool = pgbackrest.Tool{ConfigFile: file, Env: env, Log: j.log}
	return nil
}

func (j *job) act(ctx context.Context) error {
	switch j.task.Action {
	case backup.Check:
		_, err := j.catalog(ctx)
		return err
	case backup.Backup:
		return j.backUp(ctx)
	case backup.Verify:
		return j.verify(ctx)
	case backup.Delete:
		return j.delete(ctx)
	case backup.Serve:
		// It runs in another container: package run.
	case backup.Restore:
		return fail(backup.InvalidTask, errors.New("cannot restore a physical backup into a database that is there: claim a DatabaseCluster with spec.restoreFrom"))
	}
	return fail(backup.InvalidTask, fmt.Errorf("cannot do %q with physical backups: there is no such action", j.task.Action))
}

// catalog lists the repository for the report, and returns the sets of the Task's stanza.
func (j *job) catalog(ctx context.Context) ([]pgbackrest.Set, error) {
	sets, err := j.tool.Sets(ctx)
	if err != nil {
		return nil, err
	}
	j.report.Catalog = pgbackrest.Catalog(sets, j.task.Stanza)
	return pgbackrest.Of(j.task.Stanza, sets), nil
}
