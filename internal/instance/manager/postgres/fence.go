package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotStandby is the error for a server that is not a standby.
var ErrNotStandby = errors.New("the server is no standby")

// Of a standby that stops following: how often it is checked whether it has stopped, and for
// how long no new connection must have begun.
const (
	fencePoll  = 2 * time.Millisecond
	fenceQuiet = 20 * time.Millisecond
)

// Fenced is a standby that has stopped receiving WAL.
type Fenced struct {
	// Followed is the connection string by which it followed another server, or "".
	Followed string

	// Received is the position up to which it has received WAL, in bytes.
	Received int64
}

// Fence has this standby stop receiving WAL from the server that it follows. It lasts until
// Patroni sets the server that the standby follows, in each of its loops: Patroni removes its
// own settings from postgresql.auto.conf (ConfigHandler._sanitize_auto_conf of Patroni 4.0.7).
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

// quiet waits until nothing is received. A running receiver ends once its server has read the
// configuration. If none runs, one may be about to start before that.
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

// Received returns the position up to which this standby has received or replayed WAL, in
// bytes.
func (s Server) Received(ctx context.Context) (received int64, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, receivedSQL).Scan(&received)
	})
	return received, err
}

// Follows returns the connection string by which this standby follows another server, or "".
func (s Server) Follows(ctx context.Context) (conninfo string, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT setting FROM pg_settings WHERE name = 'primary_conninfo'").Scan(&conninfo)
	})
	return conninfo, err
}

// Configured returns the connection string that Patroni has configured, or "": by it this standby
// follows another server once it is not fenced any more.
func (s Server) Configured(ctx context.Context) (conninfo string, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT coalesce((SELECT setting FROM pg_file_settings
			WHERE name = 'primary_conninfo' AND sourcefile NOT LIKE '%/postgresql.auto.conf' AND error IS NULL ORDER BY seqno DESC LIMIT 1), '')`).Scan(&conninfo)
	})
	return conninfo, err
}

// Unfence has this standby follow the server that Patroni has configured.
func (s Server) Unfence(ctx context.Context) error {
	return s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "ALTER SYSTEM RESET primary_conninfo"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "SELECT pg_reload_conf()")
		return err
	})
}
