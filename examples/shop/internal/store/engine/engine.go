// Package engine contains what the databases of the shop have in common: what each of them does, and
// the parts that do not depend on its SQL.
package engine

import (
	"context"
	"errors"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// An Engine is the shop in a database of one kind. Each method makes one attempt. Those that change
// something do so in one transaction, and return an UnknownOutcomeError if the answer to its commit
// was lost.
type Engine interface {
	Close()

	// Ready returns the version of the schema, or why the database cannot serve the shop now. The
	// text may be public: it contains no host and no user.
	Ready(ctx context.Context) (int64, error)

	// Migrations returns all migrations in order.
	Migrations() ([]Migration, error)

	// Migrate applies those of all that were not applied, and returns their names, also those that
	// it applied before an error.
	Migrate(ctx context.Context, all []Migration) ([]string, error)

	Products(ctx context.Context) ([]shop.Product, error)
	Cart(ctx context.Context, session string) (shop.Cart, error)
	AddToCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error)
	SetInCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error)
	EmptyCart(ctx context.Context, session string) (shop.Cart, error)
	PruneCarts(ctx context.Context, untouched time.Duration) (int64, error)
	PlaceOrder(ctx context.Context, session, id, key string) (shop.Placement, error)
	Order(ctx context.Context, session, id string) (shop.Order, error)
	Orders(ctx context.Context, session string, limit int) ([]shop.Order, error)

	// Retryable reports whether the same operation may succeed later. It does not consider whether
	// that is safe: it is not, once a commit's answer is lost.
	Retryable(err error) bool

	// Unconnected reports whether there was no connection to work with.
	Unconnected(err error) bool
}

// The reasons why a database of any kind is not ready.
var (
	ErrNoSchema = errors.New("the schema is missing, migrate has not run")
	ErrNoAnswer = errors.New("the database does not answer in time")
	ErrReadOnly = errors.New("the database is read-only")
)

// An UnknownOutcomeError is a commit whose answer was lost: it may have been made.
type UnknownOutcomeError struct{ Err error }

func (e *UnknownOutcomeError) Error() string {
	return "the outcome of the commit is unknown: " + e.Err.Error()
}
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }
