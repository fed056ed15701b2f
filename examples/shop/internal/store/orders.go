package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// PlaceOrder turns the session's cart into the order with the given id, in one transaction. It
// reads the cart from PostgreSQL and never from a cache: what is sold is what was stored.
//
// It may be called any number of times with the same id, or with another id and the same key, and
// places one order. An empty key means no key.
func (s *Store) PlaceOrder(ctx context.Context, session, id, key string) (shop.Placement, error) {
	var placement shop.Placement
	// It is repeatable: the second run finds the order of the first one by its id.
	err := s.write(ctx, true, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		placement, err = placeOrder(ctx, tx, session, id, key)
		return err
	})
	if err != nil {
		return shop.Placement{}, fmt.Errorf("cannot place the order: %w", err)
	}
	return placement, nil
}

func placeOrder(ctx context.Context, tx pgx.Tx, session, id, key string) (shop.Placement, error) {
	// The lock comes before the check: of two requests with the same key, the second one waits here
	// and then finds the order of the first one.
	if err := lockCart(ctx, tx, session); err != nil {
		return shop.Placement{}, err
	}
	cart, err := readCart(ctx, tx, session)
	if err != nil {
		return shop.Placement{}, err
	}
	known, err := readOrders(ctx, tx, `session = $1 AND (id = $2 OR idempotency_key = $3)`, 1, session, id, optional(key))
	switch {
	case err != nil:
		return shop.Placement{}, err
	case len(known) == 1:
		return shop.Placement{Order: known[0], Cart: cart}, nil
	case len(cart.Items) == 0:
		return shop.Placement{}, shop.ErrEmptyCart
	}

	order := shop.Order{ID: id, Items: cart.Items, Total: cart.Total, Currency: cart.Currency}
	row := tx.QueryRow(ctx, `
		INSERT INTO orders (id, session, idempotency_key, total, currency) VALUES ($1, $2, $3, $4, $5)
		RETURNING created_at`, id, session, optional(key), order.Total, order.Currency)
	if err := row.Scan(&order.CreatedAt); err != nil {
		return shop.Placement{}, err
	}
	order.CreatedAt = order.CreatedAt.UTC()

	batch := &pgx.Batch{}
	for i, l := range order.Items {
		batch.Queue(`INSERT INTO order_items (order_id, position, product_id, name, price, quantity) VALUES ($1, $2, $3, $4, $5, $6)`,
			id, i+1, l.ProductID, l.Name, l.Price, l.Quantity)
	}
	batch.Queue(`DELETE FROM cart_items WHERE session = $1`, session)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return shop.Placement{}, err
	}
	return shop.Placement{Order: order, Made: true, Cart: shop.NewCart(cart.Version, nil)}, nil
}

// Order returns an order of the session. An order of another session does not exist for it.
func (s *Store) Order(ctx context.Context, session, id string) (shop.Order, error) {
	orders, err := s.orders(ctx, `session = $1 AND id = $2`, 1, session, id)
	switch {
	case err != nil:
		return shop.Order{}, fmt.Errorf("cannot read the order: %w", err)
	case len(orders) == 0:
		return shop.Order{}, shop.ErrNoSuchOrder
	}
	return orders[0], nil
}

// Orders returns the latest orders of the session, the newest first.
func (s *Store) Orders(ctx context.Context, session string, limit int) ([]shop.Order, error) {
	orders, err := s.orders(ctx, `session = $1`, limit, session)
	if err != nil {
		return nil, fmt.Errorf("cannot read the orders: %w", err)
	}
	return orders, nil
}

func (s *Store) orders(ctx context.Context, where string, limit int, args ...any) ([]shop.Order, error) {
	var orders []shop.Order
	err := s.query(ctx, func(ctx context.Context, q *pgxpool.Pool) error {
		var err error
		orders, err = readOrders(ctx, q, where, limit, args...)
		return err
	})
	return orders, err
}

// readOrders reads orders and their lines in one statement. where is a part of it and never
// contains a value.
func readOrders(ctx context.Context, q querier, where string, limit int, args ...any) ([]shop.Order, error) {
	rows, err := q.Query(ctx, fmt.Sprintf(`
		SELECT o.id, o.total, o.currency, o.created_at, i.product_id, i.name, i.price, i.quantity
		FROM (SELECT * FROM orders WHERE %s ORDER BY created_at DESC, id LIMIT %d) o
		JOIN order_items i ON i.order_id = o.id
		ORDER BY o.created_at DESC, o.id, i.position`, where, limit), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	orders := []shop.Order{}
	for rows.Next() {
		var o shop.Order
		var l shop.Line
		if err := rows.Scan(&o.ID, &o.Total, &o.Currency, &o.CreatedAt, &l.ProductID, &l.Name, &l.Price, &l.Quantity); err != nil {
			return nil, errors.Join(err, rows.Err())
		}
		l.Total = l.Price * l.Quantity
		if n := len(orders); n == 0 || orders[n-1].ID != o.ID {
			o.CreatedAt = o.CreatedAt.UTC()
			orders = append(orders, o)
		}
		last := &orders[len(orders)-1]
		last.Items = append(last.Items, l)
	}
	return orders, rows.Err()
}

// optional returns nil for "", which SQL stores as null. Null equals nothing, so that orders
// without a key never count as the same.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
