package engine

import (
	"errors"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// Rows are the rows of an answer, which the caller closes.
type Rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}

// ReadProducts reads rows of id, name, description and price.
func ReadProducts(rows Rows) ([]shop.Product, error) {
	products := []shop.Product{}
	for rows.Next() {
		p := shop.Product{Currency: shop.Currency}
		if err := rows.Scan(&p.ID, &p.Name, &p.Description, &p.Price); err != nil {
			return nil, errors.Join(err, rows.Err())
		}
		products = append(products, p)
	}
	return products, rows.Err()
}

// ReadCart reads rows of the cart's version and a line's id, name, price and quantity, which are
// null in the one row of an empty cart.
func ReadCart(rows Rows) (shop.Cart, error) {
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

// ReadOrders reads rows of an order's id, total, currency and time and a line's product, name, price
// and quantity. The rows of an order follow each other.
func ReadOrders(rows Rows) ([]shop.Order, error) {
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

// Optional returns nil for "", which SQL stores as null. Null equals nothing, so that orders
// without a key never count as the same.
func Optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
