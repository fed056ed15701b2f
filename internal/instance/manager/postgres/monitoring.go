package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/internal/instance"
)

// Monitor is the role that reads statistics. It has no password: the exporter connects over
// the socket, as the operating system's user of the server.
const Monitor = instance.UserMonitoring

// Monitoring creates the role that reads statistics, and corrects it if it was changed.
func (s Server) Monitoring(ctx context.Context) error {
	return s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var login, member bool
		err := conn.QueryRow(ctx, `SELECT coalesce(bool_or(rolcanlogin), false), coalesce(bool_or(pg_has_role(oid, 'pg_monitor', 'MEMBER')), false)
			FROM pg_roles WHERE rolname = '`+Monitor+`'`).Scan(&login, &member)
		if err != nil || login && member {
			return err
		}
		_, err = conn.Exec(ctx, `DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '`+Monitor+`') THEN CREATE ROLE `+Monitor+`; END IF;
			ALTER ROLE `+Monitor+` LOGIN; GRANT pg_monitor TO `+Monitor+`; END $$`)
		return err
	})
}
