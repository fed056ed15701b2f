package server

import (
	"context"
	"database/sql"
	"fmt"
)

// Queues returns how many transactions of the group each member has received and not applied yet, by
// its UUID.
func (s Server) Queues(ctx context.Context) (map[string]int64, error) {
	queues := map[string]int64{}
	err := s.with(ctx, readTimeout, func(ctx context.Context, conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, "SELECT member_id, count_transactions_remote_in_applier_queue FROM performance_schema.replication_group_member_stats")
		if err != nil {
			return fmt.Errorf("cannot read the queues of the members: %w", err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var member string
			var queue int64
			if err := rows.Scan(&member, &queue); err != nil {
				return fmt.Errorf("cannot read the queues of the members: %w", err)
			}
			queues[member] = queue
		}
		return rows.Err()
	})
	return queues, err
}
