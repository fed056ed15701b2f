package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/internal/instance/manager/report"
)

// Followers returns the standbys of this primary, by name. It fails on a standby.
func (s Server) Followers(ctx context.Context) (map[string]report.Follower, error) {
	followers := map[string]report.Follower{}
	err := s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		// This fails on a standby.
		if _, err := conn.Exec(ctx, "SELECT pg_current_wal_lsn()"); err != nil {
			return err
		}
		rows, err := conn.Query(ctx, `SELECT application_name::text, state = 'streaming', sync_state IN ('sync', 'quorum'),
			greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), coalesce(replay_lsn, '0/0')), 0)::bigint FROM pg_stat_replication`)
		if err != nil {
			return err
		}
		var name string
		var f report.Follower
		_, err = pgx.ForEachRow(rows, []any{&name, &f.Streaming, &f.Synchronous, &f.Lag}, func() error {
			// A connection that broke may still be listed beside its successor.
			if has, ok := followers[name]; !ok || !has.Streaming {
				followers[name] = f
			}
			return nil
		})
		return err
	})
	return followers, err
}
