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
	fencePoll  = 5 * time.Millisecond
	fenceQuiet = 20 * time.Millisecond
)

// Fence has this standby receive nothing more from whom it follows, and returns up to
// where it has received the log. It lasts until Patroni sees to what the standby follows,
// which it does at each of its turns: it removes from postgresql.auto.conf what is its own
// (ConfigHandler._sanitize_auto_conf of Patroni 4.0.7).
func (s Server) Fence(ctx context.Context) (received int64, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var standby bool
		if err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby); err != nil {
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
		quiet := time.Time{}
		for {
			var n int
			if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_wal_receiver").Scan(&n); err != nil {
				return err
			}
			switch {
			case n > 0:
				quiet = time.Time{}
			case quiet.IsZero():
				quiet = time.Now()
			case time.Since(quiet) >= fenceQuiet:
				received, err = receivedBy(ctx, conn)
				return err
			}
			timer := time.NewTimer(fencePoll)
			select {
			case <-ctx.Done():
				timer.Stop()
				return context.Cause(ctx)
			case <-timer.C:
			}
		}
	})
	return received, err
}

// Received is up to where this standby has received the log, or replayed it.
func (s Server) Received(ctx context.Context) (received int64, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		received, err = receivedBy(ctx, conn)
		return err
	})
	return received, err
}

func receivedBy(ctx context.Context, conn *pgx.Conn) (received int64, err error) {
	err = conn.QueryRow(ctx, "SELECT (greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn)::bigint").Scan(&received)
	return received, err
}

// Follows is by what connection this standby follows another server, or "".
func (s Server) Follows(ctx context.Context) (conninfo string, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT setting FROM pg_settings WHERE name = 'primary_conninfo'").Scan(&conninfo)
	})
	return conninfo, err
}
