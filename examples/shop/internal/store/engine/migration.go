package engine

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// A Migration is one file of migrations/: its number, its name and its SQL.
type Migration struct {
	Version int64
	Name    string
	SQL     string
}

// ReadMigrations returns the migrations in files, in order. They are named
// migrations/0001_subject.sql, so that the order of names is that of numbers.
func ReadMigrations(files fs.FS) ([]Migration, error) {
	paths, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("cannot list migrations: %w", err)
	}
	var all []Migration
	for i, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(i+1) {
			return nil, fmt.Errorf("cannot number migration %q: it should be number %d", name, i+1)
		}
		sql, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("cannot read migration %q: %w", name, err)
		}
		all = append(all, Migration{Version: version, Name: name, SQL: string(sql)})
	}
	return all, nil
}
