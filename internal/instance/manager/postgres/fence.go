package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotStandby is of a server that follows no other.
var ErrNotStandby = errors.New("the server is no standby")

// Of a standby that stops following: how often it is asked whether it has, and for how
// long it must not have begun anew.
const (
	fencePoll  = 2 * time.Millisecond
	fenceQuiet = 20 * time.Millisecond
)

// Fenced is a standby that receives nothing more.
type Fenced struct {
	// Followed is the connection by which it followed another server, or "".
	Followed string

	// Received is up to where it has received the log, in bytes.
	Received int64
}

// Fence has this standby receive nothing more from whom it follows. It lasts until Patroni
// sees to what the standby follows, which it does at each of its turns: it removes from
// postgresql.auto.conf what is its own (ConfigHandler._sanitize_auto_conf of Patroni
// 4.0.7).
func (s Server) Fence(ctx context.Context) (Fenced, error) {
	f := Fenced{}
	err := s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var standby bool
		var receivers int
		err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery(), current_setting('primary_conninfo'), (SELECT count(*) FROM pg_stat_wal_receiver)").Scan(&standby, &f.Followed, &receivers)
		if err != nil {
			return err
		}
		if !standby {
			return ErrNotStandby
		}
		if _, err := conn.Exec(ctx, "ALTER SYSTEM SET primary_conninfo TO ''"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
			return err
		}
		return f.quiet(ctx, conn, receivers > 0)
	})
	return f, err
}

// quiet waits until nothing is received. A receiver ends since its server has read the
// configuration; where there is none, one may be about to begin before that.
func (f *Fenced) quiet(ctx context.Context, conn *pgx.Conn, receives bool) error {
	since := time.Now()
	for {
		var n int
		err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_wal_receiver").Scan(&n)
		switch {
		case err != nil:
			return err
		case n > 0:
			receives = true
		case receives || time.Since(since) >= fenceQuiet:
			return conn.QueryRow(ctx, receivedSQL).Scan(&f.Received)
		}
		timer := time.NewTimer(fencePoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

const receivedSQL = "SELECT (greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn)::bigint"

// Received is up to where this standby has received the log, or replayed it.
func (s Server) Received(ctx context.Context) (received int64, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, receivedSQL).Scan(&received)
	})
	return received, err
}

// Follows is by what connection this standby follows another server, or "".
func (s Server) Follows(ctx context.Context) (conninfo string, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT setting FROM pg_settings WHERE name = 'primary_conninfo'").Scan(&conninfo)
	})
	return conninfo, err
}

// Told is by what connection Patroni has this standby follow another server, or "":
// what it follows once it is not fenced any more.
func (s Server) Told(ctx context.Context) (conninfo string, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT coalesce((SELECT setting FROM pg_file_settings
			WHERE name = 'primary_conninfo' AND sourcefile NOT LIKE '%/postgresql.auto.conf' AND error IS NULL ORDER BY seqno DESC LIMIT 1), '')`).Scan(&conninfo)
	})
	return conninfo, err
}

// Unfence has this standby follow whom Patroni has told it to.
func (s Server) Unfence(ctx context.Context) error {
	return s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "ALTER SYSTEM RESET primary_conninfo"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "SELECT pg_reload_conf()")
		return err
	})
}
