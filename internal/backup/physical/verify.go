package physical

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
	"github.com/storeplane/storeplane/internal/text"
)

// verify verifies all files of the repository, and restores a backup into a throw-away database.
func (j *job) verify(ctx context.Context) error {
	sets, err := j.catalog(ctx)
	if err != nil {
		return err
	}
	set, err := j.choose(sets)
	if err != nil {
		return err
	}
	entry := pgbackrest.Entry(set)
	j.report.Backup = &entry
	if err := j.tool.Verify(ctx, set.Stanza); err != nil {
		return err
	}
	if err := j.whole(ctx, sets, set); err != nil {
		return err
	}
	if err := j.tryOut(ctx, set); err != nil {
		if errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "No space left on device") {
			return fail(backup.NoSpace, err)
		}
		return err
	}
	now := j.now().UTC()
	if err := j.tool.MarkVerified(ctx, set, now); err != nil {
		return err
	}
	j.report.Backup.Verified = &now
	_, err = j.catalog(ctx)
	return err
}

func (j *job) choose(sets []pgbackrest.Set) (pgbackrest.Set, error) {
	if id := j.task.ID; id != "" {
		i := slices.IndexFunc(sets, func(s pgbackrest.Set) bool { return s.Label == id })
		if i < 0 {
			return pgbackrest.Set{}, fmt.Errorf("%w %s in the repository", pgbackrest.ErrNone, id)
		}
		return sets[i], nil
	}
	target := time.Time{}
	if j.task.Time != nil {
		target = *j.task.Time
	}
	set, err := pgbackrest.Choose(sets, j.task.Stanza, target, j.now())
	if err != nil {
		return set, fmt.Errorf("cannot verify: %w", err)
	}
	return set, nil
}

// lookAgain is the pause before the archive is listed again where a segment is missing.
const lookAgain = 20 * time.Second

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// whole checks that no WAL is missing after a set began. The other checks do not find that:
// pgBackRest's verify checks the files that exist, and the restore replays WAL only up to the end
// of the set. WAL that is missing before the set does not affect it, and no backup brings it
// back, so that is only logged.
func (j *job) whole(ctx context.Context, sets []pgbackrest.Set, set pgbackrest.Set) error {
	branch, err := j.tool.Branch(ctx, set)
	if err != nil {
		return err
	}
	gaps := branch.Gaps()
	// Several processes archive at once, so that a later segment may come before an earlier one. What is
	// missing for longer than that takes is a gap.
	for range 2 {
		if len(gaps) == 0 {
			break
		}
		if err := pause(ctx, cmp.Or(j.lookAgain, lookAgain)); err != nil {
			return err
		}
		if branch, err = j.tool.Branch(ctx, set); err != nil {
			return err
		}
		before := gaps
		gaps = slices.DeleteFunc(branch.Gaps(), func(g wal.Range) bool {
			return !slices.ContainsFunc(before, func(b wal.Range) bool {
				return b.First.Number <= g.Last.Number && g.First.Number <= b.Last.Number
			})
		})
	}
	switch {
	case len(gaps) > 0:
		return fail(backup.ArchiveGap, fmt.Errorf("cannot restore what was written after backup %s: WAL %s is missing in the archive: make a backup now, which ends the gap", set.Label, gaps[0]))
	case len(sets) == 0 || sets[0].Label == set.Label:
		return nil
	}
	// The timeline of the oldest set need not lead to that of the set, so its branch is its own.
	if branch, err = j.tool.Branch(ctx, sets[0]); err != nil {
		return err
	}
	for _, gap := range branch.Gaps() {
		_, _ = fmt.Fprintf(j.log, "WAL %s is missing in the archive: what was written after it and before the next backup was complete cannot be restored\n", gap)
	}
	return nil
}

// tryOut restores a set for the container beside this one, which starts it, and reads all of it.
func (j *job) tryOut(ctx context.Context, set pgbackrest.Set) error {
	r := recovery.Recovery{
		Tool: j.tool, Set: set, Immediate: true, DataDir: j.places.data(), WorkDir: filepath.Join(j.places.tmp, "verify"), Processes: processes, RetryFor: j.retryFor,
	}
	stop, err := r.Offer(ctx, j.places.archiveSocket())
	if err != nil {
		return err
	}
	defer stop()
	remote := engine.Remote{Dir: j.places.Socket, Scratch: j.places.Scratch}
	if err := remote.AwaitRecovered(ctx); err != nil {
		return err
	}
	if err := j.examine(ctx, recovery.At(j.places.server())); err != nil {
		return remote.Failed(err)
	}
	return nil
}

// own are the databases that PostgreSQL creates itself.
var own = []string{"postgres", "template0", "template1"}

func (j *job) examine(ctx context.Context, connect recovery.Connect) error {
	if err := j.amcheck(ctx, connect); err != nil {
		return err
	}
	// A database with that limit has lost files: DROP DATABASE was interrupted.
	databases, err := list(ctx, connect, "postgres", "SELECT datname::text FROM pg_catalog.pg_database WHERE datallowconn AND datconnlimit <> -2 ORDER BY 1")
	if err != nil {
		return judge(backup.BackupCorrupt, "cannot list the restored databases", err)
	}
	for _, d := range databases {
		rows, err := count(ctx, connect, d)
		if err != nil {
			return judge(backup.BackupCorrupt, "cannot read the restored database "+d, err)
		}
		j.report.Rows += rows
		if !slices.Contains(own, d) {
			j.report.Databases = append(j.report.Databases, d)
		}
	}
	return j.query(ctx, connect)
}

// amcheck verifies the structure of all tables and indexes with pg_amcheck.
func (j *job) amcheck(ctx context.Context, connect recovery.Connect) error {
	const damaged = 2
	program, err := exec.LookPath("pg_amcheck")
	if err != nil {
		// PostgreSQL has pg_amcheck since 14.
		return nil //nolint:nilerr // without it, all rows are read all the same
	}
	options, err := list(ctx, connect, "postgres", "SELECT '-c ' || name || '=0' FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'")
	if err != nil {
		return judge(backup.BackupCorrupt, "cannot check tables and indexes", err)
	}
	cmd := exec.CommandContext(ctx, program, "--host="+j.places.server(), "--username=postgres", "--all", "--install-missing=pg_catalog", "--no-password") //nolint:gosec // the program chooses the folder
	cmd.Env = append(os.Environ(), "PGOPTIONS="+strings.Join(append(options, recovery.Options), " "))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cannot check tables and indexes: %w", context.Cause(ctx))
	}
	exit := &exec.ExitError{}
	// The checks also fail if the server is gone or has no memory, or if it ends them.
	lost := engine.Contains(string(out), "server closed the connection", "connection to server", "out of memory", "No space left on device", "canceling statement")
	if lost || !errors.As(err, &exit) || exit.ExitCode() != damaged {
		return fail(backup.ToolFailed, fmt.Errorf("cannot check tables and indexes: pg_amcheck reports: %s", text.Line(string(out), 600)))
	}
	return fail(backup.BackupCorrupt, fmt.Errorf("cannot trust the restored tables and indexes: pg_amcheck reports: %s", text.Line(string(out), 600)))
}

// Classes of PostgreSQL's error codes
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	classResources    = "53"
	classIntervention = "57"
)

// judge adds what was attempted to an error of the restored database. The error has the given
// reason if the server reports it about the data, and ToolFailed if the server lacks room or
// memory, or is gone: that proves nothing about the backup.
func judge(reason backup.Reason, what string, err error) error {
	said := &pgconn.PgError{}
	if !errors.As(err, &said) || strings.HasPrefix(said.Code, classResources) || strings.HasPrefix(said.Code, classIntervention) {
		reason = backup.ToolFailed
	}
	return fail(reason, fmt.Errorf("%s: %w", what, err))
}

func list(ctx context.Context, connect recovery.Connect, database, sql string) ([]string, error) {
	conn, err := connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// count counts the rows of all tables of a database, which reads every page of them.
func count(ctx context.Context, connect recovery.Connect, database string) (int64, error) {
	tables, err := list(ctx, connect, database, `SELECT c.oid::pg_catalog.regclass::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'm') AND c.relispopulated AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' ORDER BY 1`)
	if err != nil {
		return 0, err
	}
	conn, err := connect(ctx, database)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var total int64
	for _, t := range tables {
		var n int64
		// The server has quoted the name already.
		if err := conn.QueryRow(ctx, "SELECT pg_catalog.count(*) FROM ONLY "+t).Scan(&n); err != nil {
			return 0, fmt.Errorf("table %s: %w", t, err)
		}
		total += n
	}
	return total, nil
}

// query runs the user's query. It must return a row, and none whose first column is false, 0 or
// null.
func (j *job) query(ctx context.Context, connect recovery.Connect) error {
	if j.task.Query == "" {
		return nil
	}
	database := j.task.QueryDatabase
	if database == "" {
		database = "postgres"
		if len(j.report.Databases) > 0 {
			database = j.report.Databases[0]
		}
	}
	conn, err := reader(ctx, connect, database)
	if err != nil {
		return judge(backup.ContentDiffers, "cannot run the query in database "+database, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, j.task.Query)
	if err != nil {
		return judge(backup.ContentDiffers, "cannot run the query", err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return judge(backup.ContentDiffers, "cannot run the query", err)
		}
		if n++; len(values) == 0 || no(values[0]) {
			return fail(backup.ContentDiffers, fmt.Errorf("the verification query returned false in row %d", n))
		}
	}
	if err := rows.Err(); err != nil {
		return judge(backup.ContentDiffers, "cannot run the query", err)
	}
	if n == 0 {
		return fail(backup.ContentDiffers, errors.New("the query returns no row"))
	}
	return nil
}

// reader connects to a database as a role that can only read, but all data. The query is the
// team's: a superuser could run programs on the server. Reading all data takes two more rights:
// PUBLIC may not connect to the databases that the platform creates, and a table with row
// security looks empty to a role that no policy names.
func reader(ctx context.Context, connect recovery.Connect, database string) (*pgx.Conn, error) {
	conn, err := connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	config := conn.Config().Copy()
	// The name is random, so no role in the backup can have it.
	config.User = "storeplane-" + rand.Text()
	role := pgx.Identifier{config.User}.Sanitize()
	for _, sql := range []string{
		"CREATE ROLE " + role + " LOGIN BYPASSRLS",
		"GRANT pg_read_all_data TO " + role,
		"GRANT CONNECT ON DATABASE " + pgx.Identifier{database}.Sanitize() + " TO " + role,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config)
}

// no reports whether a value is false, 0 or null.
func no(v any) bool {
	switch fmt.Sprint(v) {
	case "false", "0", "<nil>":
		return true
	}
	return false
}
