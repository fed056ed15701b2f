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

// open a server of the engine.
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

// throwAway starts a server of the engine.
func throwAway(ctx context.Context, e backupv1.Engine, scratch string, roles []string, log io.Writer) (engine.ThrowAway, error) {
	switch e {
	case backupv1.PostgreSQL:
		return postgresql.ThrowAway(ctx, scratch, roles, log)
	case backupv1.MySQL:
		return mysql.ThrowAway(ctx, scratch, log)
	case backupv1.MongoDB:
		return mongodb.ThrowAway(ctx, scratch, log)
	}
	return nil, unknown(e)
}

func unknown(e backupv1.Engine) error {
	return backup.Errorf(backup.InvalidTask, "there is no engine %q", e)
}

// suffixes of objects: what a dump of the engine is.
var suffixes = map[backupv1.Engine]string{
	backupv1.PostgreSQL: ".pgdump", backupv1.MySQL: ".sql", backupv1.MongoDB: ".archive",
}

// named tells whether the database that a connection names is one to back up: a
// URI may name one only because a driver wants it to.
func named(e backupv1.Engine, database string) bool {
	return database != "" && (e != backupv1.MongoDB || database != "admin")
}
