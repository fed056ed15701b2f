package server

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/verifier"
)

// monitoringHost is where the exporter connects from: it is in the server's pod, and does not see the
// socket, over which every client is the superuser.
const monitoringHost = "127.0.0.1"

// Monitoring brings about the user of the metrics exporter with its password. It may read statistics, and
// no data. The server must be the primary.
func (s Server) Monitoring(ctx context.Context, password string) error {
	if password == "" {
		return errors.New("the credentials have no password for the user of the exporter")
	}
	return s.with(ctx, changeTimeout, func(ctx context.Context, conn *sql.Conn) error {
		user := literal(instance.UserMonitoring) + "@" + literal(monitoringHost)
		var has []byte
		err := conn.QueryRowContext(ctx, "SELECT authentication_string FROM mysql.user WHERE user = ? AND host = ?", instance.UserMonitoring, monitoringHost).Scan(&has)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("cannot find the user of the exporter: %w", err)
		}
		if err == nil && verifier.Matches(has, password) {
			return nil
		}
		identified := user + " IDENTIFIED WITH " + plugin + " AS 0x" + hex.EncodeToString(verifier.New(password))
		for _, statement := range []string{
			"CREATE USER IF NOT EXISTS " + identified,
			"ALTER USER " + identified + " WITH MAX_USER_CONNECTIONS 3",
			"GRANT PROCESS, REPLICATION CLIENT ON *.* TO " + user,
			"GRANT SELECT ON performance_schema.* TO " + user,
		} {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				// The statement contains a verifier, so it is not part of the message.
				return fmt.Errorf("cannot set up the user of the exporter: %w", err)
			}
		}
		return nil
	})
}
