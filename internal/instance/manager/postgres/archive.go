package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// Archiver contains the server's statistics of archiving.
type Archiver struct {
	// System is the system identifier.
	System string

	// Last is the segment that was archived last, and LastAt when. Last is "" before the
	// first.
	Last   string
	LastAt time.Time

	// FailedAt is when archiving failed last.
	FailedAt time.Time

	// Waiting is the number of files that wait to be archived, Oldest since when the oldest of
	// them waits, and First the name of the first segment among them, without its timeline.
	Waiting int64
	Oldest  time.Time
	First   string

	// Current is the segment up to which WAL is written.
	Current string

	// Now is the time of the server's clock.
	Now time.Time
}

// Archiver returns the statistics of archiving of this server.
func (s Server) Archiver(ctx context.Context) (Archiver, error) {
	var a Archiver
	var last, failed, oldest *time.Time
	err := s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT (SELECT system_identifier::text FROM pg_control_system()),
			coalesce(last_archived_wal, ''), last_archived_time, last_failed_time, waiting, oldest, coalesce(first, ''),
			pg_walfile_name(pg_current_wal_flush_lsn()), clock_timestamp()
			FROM pg_stat_archiver, (SELECT count(*) AS waiting, min(modification) AS oldest, min(substr(name, 9, 16)) FILTER (WHERE name ~ '^[0-9A-F]{24}\.ready$') AS first
				FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready') AS queue`).
			Scan(&a.System, &a.Last, &last, &failed, &a.Waiting, &oldest, &a.First, &a.Current, &a.Now)
	})
	for from, to := range map[*time.Time]*time.Time{last: &a.LastAt, failed: &a.FailedAt, oldest: &a.Oldest} {
		if from != nil {
			*to = *from
		}
	}
	return a, err
}

// Release advances a replication slot to a position, if the slot exists, so that it no longer
// keeps the WAL before.
func (s Server) Release(ctx context.Context, slot, position string) error {
	return s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_replication_slot_advance(slot_name, $2) FROM pg_replication_slots WHERE slot_name = $1 AND restart_lsn < $2::pg_lsn", slot, position)
		return err
	})
}

// Replayed returns the number of the segment that a standby is replaying, or 0 if there is
// none. The standby has everything before that segment.
func (s Server) Replayed(ctx context.Context) (number uint64, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT coalesce(div(pg_last_wal_replay_lsn() - '0/0', $1), 0)::bigint", wal.Size).Scan(&number)
	})
	return number, err
}

// Beat commits a transaction that changes nothing, so that there is a time to recover to also
// without other writes. It returns the segment that contains the transaction, and its time.
func (s Server) Beat(ctx context.Context) (segment string, at time.Time, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT pg_walfile_name(pg_logical_emit_message(true, 'storeplane', '')), now()`).Scan(&segment, &at)
	})
	return segment, at, err
}
