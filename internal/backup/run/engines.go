package run

import (
	"context"
	"io"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/engine/mongodb"
	"github.com/storeplane/storeplane/internal/backup/engine/mysql"
	"github.com/storeplane/storeplane/internal/backup/engine/postgresql"
)

// open opens a server of the engine.
func open(e backupv1.Engine, c engine.Connection, log io.Writer) (engine.Server, error) {
	switch e {
	case backupv1.PostgreSQL:
		return postgresql.Open(c, log)
	case backupv1.MySQL:
		return mysql.Open(c, log)
	case backupv1.MongoDB:
		return mongodb.Open(c, log)
	}
	return nil, unknown(e)
}

// serve starts a throw-away server of the engine.
func serve(ctx context.Context, e backupv1.Engine, d *engine.Daemon, log io.Writer) error {
	switch e {
	case backupv1.PostgreSQL:
		return postgresql.Serve(ctx, d, log)
	case backupv1.MySQL:
		return mysql.Serve(ctx, d, log)
	case backupv1.MongoDB:
		return mongodb.Serve(ctx, d, log)
	}
	return unknown(e)
}

// attach connects to a throw-away server that the container beside runs.
func attach(ctx context.Context, e backupv1.Engine, r engine.Remote, roles []string, log io.Writer) (engine.ThrowAway, error) {
	switch e {
	case backupv1.PostgreSQL:
		return postgresql.Attach(ctx, r, roles, log)
	case backupv1.MySQL:
		return mysql.Attach(r, log)
	case backupv1.MongoDB:
		return mongodb.Attach(r, log)
	}
	return nil, unknown(e)
}

func unknown(e backupv1.Engine) error {
	return backup.Errorf(backup.InvalidTask, "there is no engine %q", e)
}

// suffixes are the ends of the names of objects, by the format of the engine's dumps.
var suffixes = map[backupv1.Engine]string{
	backupv1.PostgreSQL: ".pgdump", backupv1.MySQL: ".sql", backupv1.MongoDB: ".archive",
}

// named reports whether the database that a connection names is one to back up. For MongoDB,
// admin is not: a URI may name it only because a driver requires one.
func named(e backupv1.Engine, database string) bool {
	return database != "" && (e != backupv1.MongoDB || database != "admin")
}
