package physical

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// backUp makes a backup and has pgBackRest expire what is too old.
func (j *job) backUp(ctx context.Context) error {
	t := j.task
	if t.Stanza == "" || len(t.Hosts) == 0 {
		return fail(backup.InvalidTask, errors.New("cannot make a backup: the task names no servers"))
	}
	all, err := j.tool.Sets(ctx)
	if err != nil {
		return err
	}
	before := pgbackrest.Of(all, t.Stanza)
	options, err := j.backupOptions()
	if err != nil {
		return err
	}
	if _, err := j.tool.Run(ctx, t.Stanza, "backup", options...); err != nil {
		if pgbackrest.ReasonOf(err) == backup.BackupMissing {
			// Files of the repository are what is missing, not a backup.
			return fail(backup.SourceUnreachable, fmt.Errorf("%w: the primary has not set the repository up yet", err))
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
	for _, s := range before {
		if !contains(sets, s) {
			j.report.Expired++
		}
	}
	return nil
}

func contains(sets []pgbackrest.Set, s pgbackrest.Set) bool {
	return slices.ContainsFunc(sets, func(o pgbackrest.Set) bool { return o.Label == s.Label })
}

func (j *job) backupOptions() ([]string, error) {
	t := j.task
	var servers []pgbackrest.Server
	for _, h := range t.Hosts {
		servers = append(servers, pgbackrest.Server{Host: h, DataDir: dataDir, SocketDir: socketDir})
	}
	options := pgbackrest.Options(servers)
	kind := "incr"
	if t.Full {
		kind = "full"
	}
	options = append(options, "--type="+kind, "--start-fast", "--process-max="+strconv.Itoa(processes))
	if len(servers) > 1 {
		options = append(options, "--backup-standby=prefer")
	}
	days, err := days(t.Retention)
	if err != nil {
		return nil, fail(backup.InvalidTask, err)
	}
	return append(options, "--repo1-retention-full-type=time", "--repo1-retention-full="+strconv.Itoa(days)), nil
}

// defaultRetention in days.
const defaultRetention = 30

// days of a retention like 30d, 4w or 12m.
func days(retention string) (int, error) {
	if retention == "" {
		return defaultRetention, nil
	}
	n, err := strconv.Atoi(retention[:len(retention)-1])
	if err == nil && n > 0 {
		switch {
		case strings.HasSuffix(retention, "d"):
			return n, nil
		case strings.HasSuffix(retention, "w"):
			return 7 * n, nil
		case strings.HasSuffix(retention, "m"):
			return 30 * n, nil
		}
	}
	return 0, fmt.Errorf("cannot read retention %q: it must be like 30d, 4w or 12m", retention)
}

// delete all that is in the repository.
func (j *job) delete(ctx context.Context) error {
	stanzas, err := j.tool.Stanzas(ctx)
	if err != nil {
		return err
	}
	for _, s := range stanzas {
		// Both tell pgBackRest that it is meant.
		if _, err := j.tool.Run(ctx, s, "stop"); err != nil {
			return err
		}
		if _, err := j.tool.Run(ctx, s, "stanza-delete", "--force", "--pg1-path="+dataDir); err != nil {
			return err
		}
	}
	_, err = j.catalog(ctx)
	return err
}
