package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// Cart returns the cart of a session. One that was never filled is empty.
func (s *Store) Cart(ctx context.Context, session string) (shop.Cart, error) {
	var cart shop.Cart
	err := s.query(ctx, func(ctx context.Context, q *pgxpool.Pool) error {
		var err error
		cart, err = readCart(ctx, q, session)
		return err
	})
	if err != nil {
		return shop.Cart{}, fmt.Errorf("cannot read the cart: %w", err)
	}
	return cart, nil
}

// AddToCart adds a quantity of a product to the cart, up to the largest quantity that a cart may
// hold.
func (s *Store) AddToCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error) {
	if quantity < 1 || quantity > shop.MaxQuantity {
		return shop.Cart{}, shop.ErrQuantity
	}
	// It is not repeatable: a second run would add the quantity a second time.
	return s.changeCart(ctx, session, false, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO cart_items (session, product_id, quantity) VALUES ($1, $2, $3)
			ON CONFLICT (session, product_id) DO UPDATE SET quantity = least(cart_items.quantity + excluded.quantity, $4)`,
			session, product, quantity, shop.MaxQuantity)
		return err
	})
}

// SetInCart sets the quantity of a product in the cart. 0 removes the product.
func (s *Store) SetInCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error) {
	if quantity < 0 || quantity > shop.MaxQuantity {
		return shop.Cart{}, shop.ErrQuantity
	}
	return s.changeCart(ctx, session, true, func(ctx context.Context, tx pgx.Tx) error {
		if quantity == 0 {
			_, err := tx.Exec(ctx, `DELETE FROM cart_items WHERE session = $1 AND product_id = $2`, session, product)
			return err
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO cart_items (session, product_id, quantity) VALUES ($1, $2, $3)
			ON CONFLICT (session, product_id) DO UPDATE SET quantity = excluded.quantity`,
			session, product, quantity)
		return err
	})
}

// EmptyCart removes all products from the cart.
func (s *Store) EmptyCart(ctx context.Context, session string) (shop.Cart, error) {
	return s.changeCart(ctx, session, true, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM cart_items WHERE session = $1`, session)
		return err
	})
}

// PruneCarts deletes the carts that were not changed for the given time, and returns their number.
func (s *Store) PruneCarts(ctx context.Context, untouched time.Duration) (int64, error) {
	var pruned int64
	err := s.write(ctx, true, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM carts WHERE updated_at < now() - make_interval(secs => $1)`, untouched.Seconds())
		pruned = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot delete old carts: %w", err)
	}
	return pruned, nil
}

// foreignKeyViolation is PostgreSQL's code for a product that does not exist.
const foreignKeyViolation = "23503"

// changeCart runs change on the session's cart and returns the changed cart.
func (s *Store) changeCart(ctx context.Context, session string, repeatable bool, change func(ctx context.Context, tx pgx.Tx) error) (shop.Cart, error) {
	var cart shop.Cart
	err := s.write(ctx, repeatable, func(ctx context.Context, tx pgx.Tx) error {
		if err := lockCart(ctx, tx, session); err != nil {
			return err
		}
		if err := change(ctx, tx); err != nil {
			return err
		}
		var err error
		cart, err = readCart(ctx, tx, session)
		return err
	})
	switch {
	case sqlState(err) == foreignKeyViolation:
		return shop.Cart{}, shop.ErrNoSuchProduct
	case err != nil:
		return shop.Cart{}, fmt.Errorf("cannot change the cart: %w", err)
	}
	return cart, nil
}

// lockCart creates the cart if it does not exist, gives it its next version, and locks it until the
// transaction ends: changes of one cart, and its order, are made one after the other.
func lockCart(ctx context.Context, tx pgx.Tx, session string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO carts (session, version) VALUES ($1, 1)
		ON CONFLICT (session) DO UPDATE SET version = carts.version + 1, updated_at = now()`, session)
	return err
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readCart reads the version and the lines in one statement, so that they are consistent without a
// transaction.
func readCart(ctx context.Context, q querier, session string) (shop.Cart, error) {
	rows, err := q.Query(ctx, `
		SELECT c.version, p.id, p.name, p.price, i.quantity
		FROM carts c
		LEFT JOIN cart_items i ON i.session = c.session
		LEFT JOIN products p ON p.id = i.product_id
		WHERE c.session = $1
		ORDER BY i.added_at, p.id`, session)
	if err != nil {
		return shop.Cart{}, err
	}
	defer rows.Close()

	var version int64
	var lines []shop.Line
	for rows.Next() {
		var id, name *string
		var price, quantity *int64
		if err := rows.Scan(&version, &id, &name, &price, &quantity); err != nil {
			return shop.Cart{}, errors.Join(err, rows.Err())
		}
		if id != nil {
			lines = append(lines, shop.Line{ProductID: *id, Name: *name, Price: *price, Quantity: *quantity})
		}
	}
	return shop.NewCart(version, lines), rows.Err()
}
