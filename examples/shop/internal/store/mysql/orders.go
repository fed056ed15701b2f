package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// PlaceOrder turns the session's cart into the order with the given id.
func (d *Database) PlaceOrder(ctx context.Context, session, id, key string) (shop.Placement, error) {
	var placement shop.Placement
	err := d.write(ctx, func(conn *sql.Conn) error {
		var err error
		placement, err = placeOrder(ctx, conn, session, id, key)
		return err
	})
	return placement, err
}

func placeOrder(ctx context.Context, conn *sql.Conn, session, id, key string) (shop.Placement, error) {
	// The lock comes before the check: of two requests with the same key, the second one waits here
	// and then finds the order of the first one.
	if err := lockCart(ctx, conn, session); err != nil {
		return shop.Placement{}, err
	}
	cart, err := readCart(ctx, conn, session)
	if err != nil {
		return shop.Placement{}, err
	}
	known, err := readOrders(ctx, conn, `session = ? AND (id = ? OR idempotency_key = ?)`, 1, session, id, engine.Optional(key))
	switch {
	case err != nil:
		return shop.Placement{}, err
	case len(known) == 1:
		return shop.Placement{Order: known[0], Cart: cart}, nil
	case len(cart.Items) == 0:
		return shop.Placement{}, shop.ErrEmptyCart
	}

	if _, err := conn.ExecContext(ctx, `INSERT INTO orders (id, session, idempotency_key, total, currency) VALUES (?, ?, ?, ?, ?)`,
		id, session, engine.Optional(key), cart.Total, cart.Currency); err != nil {
		return shop.Placement{}, err
	}
	for i, l := range cart.Items {
		if _, err := conn.ExecContext(ctx, `INSERT INTO order_items (order_id, position, product_id, name, price, quantity) VALUES (?, ?, ?, ?, ?, ?)`,
			id, i+1, l.ProductID, l.Name, l.Price, l.Quantity); err != nil {
			return shop.Placement{}, err
		}
	}
	if _, err := conn.ExecContext(ctx, `DELETE FROM cart_items WHERE session = ?`, session); err != nil {
		return shop.Placement{}, err
	}
	order := shop.Order{ID: id, Items: cart.Items, Total: cart.Total, Currency: cart.Currency}
	row := conn.QueryRowContext(ctx, `SELECT created_at FROM orders WHERE id = ?`, id)
	if err := row.Scan(&order.CreatedAt); err != nil {
		return shop.Placement{}, err
	}
	return shop.Placement{Order: order, Made: true, Cart: shop.NewCart(cart.Version, nil)}, nil
}

// Order returns an order of the session.
func (d *Database) Order(ctx context.Context, session, id string) (shop.Order, error) {
	orders, err := d.orders(ctx, `session = ? AND id = ?`, 1, session, id)
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
	return d.orders(ctx, `session = ?`, limit, session)
}

func (d *Database) orders(ctx context.Context, where string, limit int, args ...any) ([]shop.Order, error) {
	var orders []shop.Order
	err := d.use(ctx, func(conn *sql.Conn) error {
		var err error
		orders, err = readOrders(ctx, conn, where, limit, args...)
		return err
	})
	return orders, err
}

// readOrders reads orders and their lines in one statement. where is a part of it and never
// contains a value.
func readOrders(ctx context.Context, conn *sql.Conn, where string, limit int, args ...any) ([]shop.Order, error) {
	rows, err := conn.QueryContext(ctx, fmt.Sprintf(`
		SELECT o.id, o.total, o.currency, o.created_at, i.product_id, i.name, i.price, i.quantity
		FROM (SELECT * FROM orders WHERE %s ORDER BY created_at DESC, id LIMIT %d) o
		JOIN order_items i ON i.order_id = o.id
		ORDER BY o.created_at DESC, o.id, i.position`, where, limit), args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	return engine.ReadOrders(rows)
}
