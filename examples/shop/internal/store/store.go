// Package store stores the shop in PostgreSQL or MySQL, which is authoritative for carts and orders.
// It survives failovers: what can be repeated safely is retried for 10 s, and the rest is reported as
// unavailable. It depends neither on HTTP nor on the cache.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
	"github.com/storeplane/storeplane/examples/shop/internal/store/mysql"
	"github.com/storeplane/storeplane/examples/shop/internal/store/postgresql"
)

// A Store is the shop's database.
type Store struct {
	engine engine.Engine
}

// Open returns the store at uri, whose scheme is that of the engine. It does not wait for the
// database: a backend that starts before its database is unready, and is not restarted.
//
// The error never contains the URI or a part of it, since that contains a password.
func Open(ctx context.Context, uri string) (*Store, error) {
	var db engine.Engine
	var err error
	scheme, _, _ := strings.Cut(uri, "://")
	switch scheme {
	case "postgres", "postgresql":
		db, err = postgresql.Open(ctx, uri)
	case "mysql":
		db, err = mysql.Open(uri)
	default:
		err = errors.New("its scheme is neither postgres nor mysql")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use DATABASE_URL: %w; it should read postgres://user:password@host:5432/dbname or mysql://user:password@host:3306/dbname (it is not printed, as it holds a password)", err)
	}
	return &Store{engine: db}, nil
}

// Close waits for the connections in use and closes all.
func (s *Store) Close() { s.engine.Close() }

// Ready returns why the database cannot serve the shop now, or nil. The text may be public: it
// contains no host and no user.
func (s *Store) Ready(ctx context.Context) error {
	all, err := s.engine.Migrations()
	if err != nil {
		return err
	}
	have, err := s.engine.Ready(ctx)
	if err != nil {
		return err
	}
	if want := int64(len(all)); have < want {
		return fmt.Errorf("the schema has version %d and should have %d, migrate has not run", have, want)
	}
	return nil
}
