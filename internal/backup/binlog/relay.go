package binlog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/internal/gtid"
)

// channel is the replication channel by which binary logs are applied.
const channel = "storeplane_restore"

// nowhere is the source of the channel, to which nothing connects: it is an invalid name (RFC 2606).
const nowhere = "none.invalid"

// poll is how often a server is asked how far it is.
const poll = 200 * time.Millisecond

// A Relay has a server apply binary logs as it would those of its source: in parallel, and skipping transactions that
// it has. The server's relay logs have to be in a folder that this program can write to, and no replication may run.
type Relay struct {
	db    *sql.DB
	base  string
	files []string
}

// anonymous is an identifier of a server that no server of a DatabaseCluster has: a server takes transactions of its own
// identifier for those that it has executed itself, and skips them.
const anonymous = 4294967295

// NewRelay returns a Relay of the server of a connection that may do anything. The server has another identifier from
// then on, until it is started again.
func NewRelay(ctx context.Context, db *sql.DB) (*Relay, error) {
	r := &Relay{db: db}
	if _, err := db.ExecContext(ctx, fmt.Sprintf("SET GLOBAL server_id = %d", anonymous)); err != nil {
		return nil, fmt.Errorf("cannot set the identifier of the server: %w", err)
	}
	if err := db.QueryRowContext(ctx, "SELECT @@GLOBAL.relay_log_basename").Scan(&r.base); err != nil {
		return nil, fmt.Errorf("cannot find the relay logs of the server: %w", err)
	}
	r.base += "-" + channel
	return r, r.reset(ctx)
}

// Create returns a new file to write a binary log to. Apply applies the files in the order in which they were created.
func (r *Relay) Create() (*os.File, error) {
	name := fmt.Sprintf("%s.%06d", r.base, len(r.files)+1)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640) //nolint:gosec // the server names its folder
	if err != nil {
		return nil, fmt.Errorf("cannot create a relay log: %w", err)
	}
	r.files = append(r.files, name)
	if err := r.give(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// give gives a file to the user of the server, which owns the folder, if that is another one: a pod has one user alone.
func (r *Relay) give(name string) error {
	info, err := os.Stat(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("cannot find the folder of relay logs: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	if err := os.Chown(name, int(owner.Uid), int(owner.Gid)); err != nil {
		return fmt.Errorf("cannot give a relay log to the server: %w", err)
	}
	return nil
}

// Apply applies the files that were created, and removes them. It returns once the server has executed all of a set of
// transactions, which are in them.
func (r *Relay) Apply(ctx context.Context, want gtid.Set) error {
	if len(r.files) == 0 {
		return nil
	}
	if err := os.WriteFile(r.index(), []byte(strings.Join(r.files, "\n")+"\n"), 0o640); err != nil { //nolint:gosec // it has names alone
		return fmt.Errorf("cannot write the index of relay logs: %w", err)
	}
	if err := r.give(r.index()); err != nil {
		return err
	}
	for _, statement := range []string{
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '%s', RELAY_LOG_FILE = '%s', RELAY_LOG_POS = 4 FOR CHANNEL '%s'", nowhere, r.files[0], channel),
		fmt.Sprintf("START REPLICA SQL_THREAD FOR CHANNEL '%s'", channel),
	} {
		if _, err := r.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("cannot apply binary logs: %w", err)
		}
	}
	err := r.await(ctx, want)
	return errors.Join(err, r.reset(context.WithoutCancel(ctx)))
}

func (r *Relay) index() string { return r.base + ".index" }

// await waits until the server has executed a set of transactions.
func (r *Relay) await(ctx context.Context, want gtid.Set) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	idle := 0
	for {
		// The state is read first: an applier that had ended by then, or had read all, executes nothing more.
		is, err := r.state(ctx)
		if err != nil {
			return err
		}
		var text string
		if err := r.db.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
			return fmt.Errorf("cannot read which transactions the server has executed: %w", err)
		}
		have, err := gtid.Parse(text)
		switch {
		case err != nil:
			return err
		case have.Contains(want):
			return nil
		case !is.running:
			return fmt.Errorf("cannot apply binary logs: %s", cmp.Or(is.problem, "the server has stopped to apply them"))
		case !is.idle:
			idle = 0
		case idle >= idleMost:
			return fmt.Errorf("cannot apply binary logs: the server has read all of them, and has not executed %s", want.Minus(have))
		default:
			idle++
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// idleMost is how often in a row a server may be found idle before it has executed all: its workers may still be at it.
const idleMost = 300

// An applierState is how a server applies binary logs: idle is true if it has read all of them, and executes none.
type applierState struct {
	running, idle bool
	problem       string
}

// state returns how the server applies binary logs.
func (r *Relay) state(ctx context.Context) (applierState, error) {
	rows, err := r.db.QueryContext(ctx, fmt.Sprintf("SHOW REPLICA STATUS FOR CHANNEL '%s'", channel))
	if err != nil {
		return applierState{}, fmt.Errorf("cannot read how far the server is: %w", err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		return applierState{}, errors.Join(err, rows.Err())
	}
	texts, values := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range texts {
		values[i] = &texts[i]
	}
	if err := rows.Scan(values...); err != nil {
		return applierState{}, fmt.Errorf("cannot read how far the server is: %w", err)
	}
	out := applierState{}
	for i, name := range names {
		switch text := texts[i].String; name {
		case "Replica_SQL_Running":
			out.running = text == "Yes"
		case "Replica_SQL_Running_State":
			out.idle = strings.HasPrefix(text, "Replica has read all relay log")
		case "Last_SQL_Error":
			out.problem = text
		}
	}
	if err := rows.Err(); err != nil || !out.idle {
		return out, err
	}
	var busy int
	if err := r.db.QueryRowContext(ctx, atWork).Scan(&busy); err != nil {
		return out, fmt.Errorf("cannot read how far the server is: %w", err)
	}
	out.idle = busy == 0
	return out, nil
}

// atWork counts the threads that execute transactions: one may take hours after all was read.
const atWork = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'system user' AND state IS NOT NULL AND state NOT LIKE 'Waiting for an event from Coordinator%' AND state NOT LIKE 'Replica has read all relay log%'"

// reset ends the channel, if there is one, and removes the files.
func (r *Relay) reset(ctx context.Context) error {
	var n int
	if err := r.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM mysql.slave_relay_log_info WHERE Channel_name = ?", channel).Scan(&n); err != nil {
		return fmt.Errorf("cannot find the server's replication channels: %w", err)
	}
	if n > 0 {
		for _, statement := range []string{"STOP REPLICA", "RESET REPLICA ALL"} {
			if _, err := r.db.ExecContext(ctx, fmt.Sprintf("%s FOR CHANNEL '%s'", statement, channel)); err != nil {
				return fmt.Errorf("cannot end the applying of binary logs: %w", err)
			}
		}
	}
	for _, name := range append(r.files, r.index()) {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot remove a relay log: %w", err)
		}
	}
	r.files = nil
	return nil
}
