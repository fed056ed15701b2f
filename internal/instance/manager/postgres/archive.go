package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Archiver says how archiving goes.
type Archiver struct {
	// System is the system identifier.
	System string

	// Last segment that was archived, and when; "" before the first.
	Last   string
	LastAt time.Time

	// FailedAt is when it failed last.
	FailedAt time.Time

	// Waiting segments, since when the oldest one does, and the name of the first
	// without its timeline.
	Waiting int64
	Oldest  time.Time
	First   string

	// Current segment, up to which all is written.
	Current string

	// Now by the server's clock.
	Now time.Time
}

// Archiver of this server.
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

// Release what a slot keeps up to a position, if there is such a slot.
func (s Server) Release(ctx context.Context, slot, position string) error {
	return s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_replication_slot_advance(slot_name, $2) FROM pg_replication_slots WHERE slot_name = $1 AND restart_lsn < $2::pg_lsn", slot, position)
		return err
	})
}

// Beat commits a transaction that changes nothing, so that there is a time to
// recover to also while nobody writes, and says which segment it is in.
func (s Server) Beat(ctx context.Context) (segment string, at time.Time, err error) {
	err = s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT pg_walfile_name(pg_logical_emit_message(true, 'storeplane', '')), now()`).Scan(&segment, &at)
	})
	return segment, at, err
}
