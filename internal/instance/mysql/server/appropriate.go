package server

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/storeplane/storeplane/internal/instance"
)

// channels are the tables in which a server keeps how it receives from others. A backup has those of the
// server that it was made of, whose relay logs it does not have.
var channels = []string{"mysql.slave_master_info", "mysql.slave_relay_log_info", "mysql.slave_worker_info"}

// Appropriate makes the data of a backup that of this cluster, by the statements for the user as which
// servers connect to each other. The identifier of the data becomes another one: what is written from now
// on is not what the backed-up cluster goes on to write. No user connects until this claim has it, with its
// own password. The server must be no member of a group.
func (s Server) Appropriate(ctx context.Context, replicationUser []string) error {
	return s.with(ctx, changeTimeout, func(ctx context.Context, conn *sql.Conn) error {
		statements := append([]string{"SET SESSION sql_log_bin = 0"}, replicationUser...)
		for _, table := range channels {
			statements = append(statements, "DELETE FROM "+table)
		}
		statement, err := renewal(ctx, conn, "")
		if err != nil {
			return err
		}
		if statement != "" {
			statements = append(statements, statement)
		}
		locks, err := lockOthers(ctx, conn)
		if err != nil {
			return err
		}
		statements = append(statements, locks...)
		for _, statement := range statements {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("cannot make the data of the backup that of this cluster: cannot execute %s: %w", statement, err)
			}
		}
		return nil
	})
}

// lockOthers returns the statements that lock all users but those of the server itself and the superuser of
// the socket, and the one as which servers connect to each other.
func lockOthers(ctx context.Context, conn *sql.Conn) ([]string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT user, host FROM mysql.user WHERE account_locked = 'N' AND NOT (user = ? AND host = 'localhost') AND user <> ? AND user NOT LIKE 'mysql.%' ORDER BY user, host",
		instance.MySQLSuperuser, User)
	if err != nil {
		return nil, fmt.Errorf("cannot read the users: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var user, host string
		if err := rows.Scan(&user, &host); err != nil {
			return nil, fmt.Errorf("cannot read the users: %w", err)
		}
		out = append(out, "ALTER USER "+literal(user)+"@"+literal(host)+" ACCOUNT LOCK")
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the users: %w", err)
	}
	return out, nil
}
