package mysql

import (
	"context"
	"database/sql"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// Products returns the catalogue, in the order of its positions.
func (d *Database) Products(ctx context.Context) ([]shop.Product, error) {
	var products []shop.Product
	err := d.use(ctx, func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, `SELECT id, name, description, price FROM products ORDER BY position, id`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		products, err = engine.ReadProducts(rows)
		return err
	})
	return products, err
}

// Cart returns the cart of a session.
func (d *Database) Cart(ctx context.Context, session string) (shop.Cart, error) {
	var cart shop.Cart
	err := d.use(ctx, func(conn *sql.Conn) error {
		var err error
		cart, err = readCart(ctx, conn, session)
		return err
	})
	return cart, err
}

// AddToCart adds a quantity of a product to the cart.
func (d *Database) AddToCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error) {
	return d.changeCart(ctx, session, `
		INSERT INTO cart_items (session, product_id, quantity) VALUES (?, ?, ?) AS new
		ON DUPLICATE KEY UPDATE quantity = least(cart_items.quantity + new.quantity, ?)`,
		session, product, quantity, shop.MaxQuantity)
}

// SetInCart sets the quantity of a product in the cart. 0 removes the product.
func (d *Database) SetInCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error) {
	if quantity == 0 {
		return d.changeCart(ctx, session, `DELETE FROM cart_items WHERE session = ? AND product_id = ?`, session, product)
	}
	return d.changeCart(ctx, session, `
		INSERT INTO cart_items (session, product_id, quantity) VALUES (?, ?, ?) AS new
		ON DUPLICATE KEY UPDATE quantity = new.quantity`,
		session, product, quantity)
}

// EmptyCart removes all products from the cart.
func (d *Database) EmptyCart(ctx context.Context, session string) (shop.Cart, error) {
	return d.changeCart(ctx, session, `DELETE FROM cart_items WHERE session = ?`, session)
}

// PruneCarts deletes the carts that were not changed for the given time, and returns their number.
func (d *Database) PruneCarts(ctx context.Context, untouched time.Duration) (int64, error) {
	var pruned int64
	err := d.write(ctx, func(conn *sql.Conn) error {
		result, err := conn.ExecContext(ctx, `DELETE FROM carts WHERE updated_at < now(6) - INTERVAL ? MICROSECOND`, untouched.Microseconds())
		if err != nil {
			return err
		}
		pruned, err = result.RowsAffected()
		return err
	})
	return pruned, err
}

// changeCart runs a statement on the session's cart and returns the changed cart.
func (d *Database) changeCart(ctx context.Context, session, statement string, args ...any) (shop.Cart, error) {
	var cart shop.Cart
	err := d.write(ctx, func(conn *sql.Conn) error {
		if err := lockCart(ctx, conn, session); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
		var err error
		cart, err = readCart(ctx, conn, session)
		return err
	})
	switch number(err) {
	case noReferencedRow, dataTooLong:
		// No product has an id that is longer than the column.
		return shop.Cart{}, shop.ErrNoSuchProduct
	}
	return cart, err
}

// lockCart creates the cart if it does not exist, gives it its next version, and locks it until the
// transaction ends: changes of one cart, and its order, are made one after the other.
func lockCart(ctx context.Context, conn *sql.Conn, session string) error {
	_, err := conn.ExecContext(ctx, `
		INSERT INTO carts (session, version) VALUES (?, 1)
		ON DUPLICATE KEY UPDATE version = version + 1, updated_at = now(6)`, session)
	return err
}

// readCart reads the version and the lines in one statement, so that they are consistent without a
// transaction.
func readCart(ctx context.Context, conn *sql.Conn, session string) (shop.Cart, error) {
	rows, err := conn.QueryContext(ctx, `
		SELECT c.version, p.id, p.name, p.price, i.quantity
		FROM carts c
		LEFT JOIN cart_items i ON i.session = c.session
		LEFT JOIN products p ON p.id = i.product_id
		WHERE c.session = ?
		ORDER BY i.added_at, p.id`, session)
	if err != nil {
		return shop.Cart{}, err
	}
	defer func() { _ = rows.Close() }()
	return engine.ReadCart(rows)
}
