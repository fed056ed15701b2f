package mysql

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/binlog"
)

// Position returns the set of the transactions that the server has executed.
func (s *Server) Position(ctx context.Context) (string, error) {
	var position string
	err := s.db.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&position)
	return strings.ReplaceAll(position, "\n", ""), failed(ctx, "cannot read the position of the server", err)
}

// Relay returns what has the server apply binary logs.
func (s *Server) Relay(ctx context.Context) (*binlog.Relay, error) { return binlog.NewRelay(ctx, s.db) }

// Shutdown asks the server to end, and does not wait for it.
func (s *Server) Shutdown(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "SHUTDOWN")
	return s.Failed(failed(ctx, "cannot shut the throw-away database down", err))
}

// CountAll checks all tables of some databases, all of their indexes among them, and counts their rows. A table that is
// damaged has the reason ContentDiffers.
func (s *Server) CountAll(ctx context.Context, databases []string) (int64, error) {
	var rows int64
	for _, database := range databases {
		tables, err := s.Count(ctx, database)
		if err != nil && number(err) != 0 && backup.ReasonOf(err) == backup.ToolFailed {
			return 0, backup.Errorf(backup.ContentDiffers, "cannot read database %s: %w", database, err)
		}
		if err != nil {
			return 0, fmt.Errorf("cannot read database %s: %w", database, err)
		}
		for _, table := range slices.Sorted(maps.Keys(tables)) {
			if err := s.checkTable(ctx, database, table); err != nil {
				return 0, err
			}
			rows += tables[table]
		}
	}
	return rows, nil
}

// checkTable checks the pages of a table.
//
// https://dev.mysql.com/doc/refman/9.7/en/check-table.html
func (s *Server) checkTable(ctx context.Context, database, table string) error {
	what := "cannot check table " + table + " of database " + database
	rows, err := s.db.QueryContext(ctx, "CHECK TABLE "+quote(database)+"."+quote(table))
	if err != nil {
		return failed(ctx, what, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, op, kind, text string
		if err := rows.Scan(&name, &op, &kind, &text); err != nil {
			return failed(ctx, what, err)
		}
		if kind == "error" || kind == "status" && text != "OK" {
			return backup.Errorf(backup.ContentDiffers, "table %s of database %s is damaged: %s", table, database, text)
		}
	}
	return failed(ctx, what, rows.Err())
}

// LeaveOut reports whether a file or a folder of a server's data is not part of a backup, because a server creates
// it anew: its UUID, which no two servers may share; temporary tablespaces; the state of a copy; files of its
// processes; and certificates. Folders are databases, whatever their names are, but for those that no name of a
// database becomes.
func LeaveOut(name string, isFolder bool) bool {
	switch {
	case strings.Contains(name, "/"):
		return false
	case isFolder:
		return name == "#innodb_temp" || name == "#clone"
	case name == "auto.cnf", name == "ib_buffer_pool":
		return true
	}
	for _, pattern := range []string{"*.pid", "*.sock", "*.lock", "*.pem", "*.err", "ibtmp*"} {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}
