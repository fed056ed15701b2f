package postgresql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// PlaceOrder turns the session's cart into the order with the given id.
func (d *Database) PlaceOrder(ctx context.Context, session, id, key string) (shop.Placement, error) {
	var placement shop.Placement
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		placement, err = placeOrder(ctx, tx, session, id, key)
		return err
	})
	return placement, err
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
	known, err := readOrders(ctx, tx, `session = $1 AND (id = $2 OR idempotency_key = $3)`, 1, session, id, engine.Optional(key))
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
		RETURNING created_at`, id, session, engine.Optional(key), order.Total, order.Currency)
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

// Order returns an order of the session.
func (d *Database) Order(ctx context.Context, session, id string) (shop.Order, error) {
	orders, err := readOrders(ctx, d.pool, `session = $1 AND id = $2`, 1, session, id)
	switch {
	case err != nil:
		return shop.Order{}, err
	case len(orders) == 0:
		return shop.Order{}, shop.ErrNoSuchOrder
	}
	return orders[0], nil
}

// Orders returns the latest orders of the session, the newest first.
func (d *Database) Orders(ctx context.Context, session string, limit int) ([]shop.Order, error) {
	return readOrders(ctx, d.pool, `session = $1`, limit, session)
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

	return engine.ReadOrders(rows)
}
