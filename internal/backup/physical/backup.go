package physical

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// fromStandby is the option by which a standby is read, or else the primary where none answers.
const fromStandby = "--backup-standby=prefer"

// backUp makes room, creates a backup, and lets pgBackRest expire what is too old.
func (j *job) backUp(ctx context.Context) error {
	t := j.task
	if t.Stanza == "" || len(j.servers()) == 0 {
		return fail(backup.InvalidTask, errors.New("cannot make a backup: the task names no servers"))
	}
	all, err := j.tool.Sets(ctx)
	if err != nil {
		return err
	}
	before := pgbackrest.Of(t.Stanza, all)
	full := t.Full && (t.FullEvery == 0 || pgbackrest.FullDue(before, t.FullEvery, j.now()))
	options, err := j.backupOptions(ctx, full)
	if err != nil {
		return err
	}
	if err := j.makeRoom(ctx, full); err != nil {
		return j.failed(ctx, before, err)
	}
	marks := j.watchMarks(ctx)
	err = j.pack(ctx, options)
	if lost := j.markAgain(ctx, marks()); lost != nil {
		_, _ = fmt.Fprintf(j.log, "cannot record again which backups were verified meanwhile: %v\n", lost)
	}
	if err != nil {
		err = j.failed(ctx, before, err)
		if pgbackrest.ReasonOf(err) == backup.BackupMissing {
			// Files of the repository are missing, not a backup.
			return notSetUp(err)
		}
		return err
	}
	sets, err := j.catalog(ctx)
	if err != nil {
		return err
	}
	made := slices.IndexFunc(sets, func(s pgbackrest.Set) bool { return !contains(before, s) })
	if made < 0 {
		return fail(backup.BackupMissing, errors.New("cannot find the backup that was just made in the repository, or PostgreSQL's pages are damaged: the log names them"))
	}
	entry := pgbackrest.Entry(sets[made])
	j.report.Backup = &entry
	j.countExpired(before, sets)
	return nil
}

// markEvery is how often it is looked which backups have been verified while another one is made.
const markEvery = time.Minute

// A mark is the stanza and label of a backup that was verified.
type mark struct{ stanza, label string }

func markOf(s pgbackrest.Set) mark { return mark{s.Stanza, s.Label} }

// watchMarks looks until the returned function is called which backups are marked as verified, and
// returns when each was.
func (j *job) watchMarks(ctx context.Context) (stop func() map[mark]time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	marks := map[mark]time.Time{}
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(cmp.Or(j.markEvery, markEvery))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// A repository that cannot be read makes the backup fail.
			sets, _ := j.tool.Sets(ctx)
			for _, s := range sets {
				if s.Verified.After(marks[markOf(s)]) {
					marks[markOf(s)] = s.Verified
				}
			}
		}
	})
	return func() map[mark]time.Time {
		cancel()
		done.Wait()
		return marks
	}
}

// markAgain marks backups that have lost their mark: pgBackRest ends a backup by writing its list of
// backups as it was when the backup began
// (https://github.com/pgbackrest/pgbackrest/blob/main/src/command/backup/backup.c).
func (j *job) markAgain(ctx context.Context, marks map[mark]time.Time) error {
	if len(marks) == 0 {
		return nil
	}
	sets, err := j.tool.Sets(ctx)
	if err != nil {
		return err
	}
	for _, s := range sets {
		if when := marks[markOf(s)]; when.After(s.Verified) {
			err = errors.Join(err, j.tool.MarkVerified(ctx, s, when))
		}
	}
	return err
}

// failed records the expired backups and the catalog after a backup that failed with err, and
// returns err: older backups may have expired for it, which the report must not list. A
// repository that cannot be read does not hide the failure.
func (j *job) failed(ctx context.Context, before []pgbackrest.Set, err error) error {
	sets, listErr := j.catalog(ctx)
	if listErr != nil {
		j.report.Catalog = nil
		return err
	}
	j.countExpired(before, sets)
	return err
}

func (j *job) countExpired(before, after []pgbackrest.Set) {
	for _, s := range before {
		if !contains(after, s) {
			j.report.Expired++
		}
	}
}

// notSetUp returns the error for a repository that the primary has not set up yet, which is
// retried.
func notSetUp(err error) error {
	return fail(backup.SourceUnreachable, fmt.Errorf("cannot make a backup: the primary has not set the repository up yet: %w", err))
}

func contains(sets []pgbackrest.Set, s pgbackrest.Set) bool {
	return slices.ContainsFunc(sets, func(o pgbackrest.Set) bool { return o.Label == s.Label })
}

func (j *job) backupOptions(ctx context.Context, full bool) ([]string, error) {
	t, servers := j.task, j.servers()
	options := pgbackrest.Options(servers)
	kind := "incr"
	if full {
		kind = "full"
	}
	// The remains of an earlier run are removed, which makes room, and not resumed.
	options = append(options, "--type="+kind, "--start-fast", "--no-resume", "--process-max="+strconv.Itoa(processes))
	version, err := pgbackrest.Version(ctx)
	if err != nil {
		return nil, err
	}
	if pgbackrest.HasBlocks(version) {
		// Full backups need the option too, for the incremental ones that follow.
		options = append(options, "--repo1-block")
	}
	if len(servers) > 1 {
		options = append(options, fromStandby)
	}
	days, err := pgbackrest.Days(t.Retention)
	if err != nil {
		return nil, fail(backup.InvalidTask, err)
	}
	return append(options, "--repo1-retention-full-type=time", "--repo1-retention-full="+strconv.Itoa(days)), nil
}

// servers returns the servers of the cluster.
func (j *job) servers() []pgbackrest.Server {
	if j.places.servers != nil {
		return j.places.servers
	}
	var out []pgbackrest.Server
	for _, h := range j.task.Hosts {
		out = append(out, pgbackrest.Server{Host: h, DataDir: instance.DataDir, SocketDir: instance.SocketDir})
	}
	return out
}

// delete deletes all that is in the repository.
func (j *job) delete(ctx context.Context) error {
	stanzas, err := j.tool.Stanzas(ctx)
	if err != nil {
		return err
	}
	for _, s := range stanzas {
		// Both stop and --force confirm to pgBackRest that the deletion is intended.
		if _, err := j.tool.Run(ctx, s, "stop"); err != nil {
			return err
		}
		if _, err := j.tool.Run(ctx, s, "stanza-delete", "--force", "--pg1-path="+instance.DataDir); err != nil {
			return err
		}
	}
	_, err = j.catalog(ctx)
	return err
}
