package postgresql

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// Products returns the catalogue, in the order of its positions.
func (d *Database) Products(ctx context.Context) ([]shop.Product, error) {
	rows, err := d.pool.Query(ctx, `SELECT id, name, description, price FROM products ORDER BY position, id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return engine.ReadProducts(rows)
}

// Cart returns the cart of a session.
func (d *Database) Cart(ctx context.Context, session string) (shop.Cart, error) {
	return readCart(ctx, d.pool, session)
}

// AddToCart adds a quantity of a product to the cart.
func (d *Database) AddToCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error) {
	return d.changeCart(ctx, session, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO cart_items (session, product_id, quantity) VALUES ($1, $2, $3)
			ON CONFLICT (session, product_id) DO UPDATE SET quantity = least(cart_items.quantity + excluded.quantity, $4)`,
			session, product, quantity, shop.MaxQuantity)
		return err
	})
}

// SetInCart sets the quantity of a product in the cart. 0 removes the product.
func (d *Database) SetInCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error) {
	return d.changeCart(ctx, session, func(ctx context.Context, tx pgx.Tx) error {
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
func (d *Database) EmptyCart(ctx context.Context, session string) (shop.Cart, error) {
	return d.changeCart(ctx, session, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM cart_items WHERE session = $1`, session)
		return err
	})
}

// PruneCarts deletes the carts that were not changed for the given time, and returns their number.
func (d *Database) PruneCarts(ctx context.Context, untouched time.Duration) (int64, error) {
	var pruned int64
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM carts WHERE updated_at < now() - make_interval(secs => $1)`, untouched.Seconds())
		pruned = tag.RowsAffected()
		return err
	})
	return pruned, err
}

// foreignKeyViolation is PostgreSQL's code for a product that does not exist.
const foreignKeyViolation = "23503"

// changeCart runs change on the session's cart and returns the changed cart.
func (d *Database) changeCart(ctx context.Context, session string, change func(ctx context.Context, tx pgx.Tx) error) (shop.Cart, error) {
	var cart shop.Cart
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
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
	if sqlState(err) == foreignKeyViolation {
		return shop.Cart{}, shop.ErrNoSuchProduct
	}
	return cart, err
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

	return engine.ReadCart(rows)
}
