// Package shop contains the types that the backend and the frontend share: products, carts and
// orders as they are transferred, and the session of a request. It depends neither on a database
// nor on a page.
//
// Every amount is an integer in the currency's smallest unit (cents), since floating point cannot
// represent 0.10.
package shop

import (
	"errors"
	"fmt"
	"time"
)

// Currency is the currency of every price.
const Currency = "EUR"

// MaxQuantity is the largest quantity of one product in a cart.
const MaxQuantity = 99

// The errors that a request causes, as opposed to those of the shop.
var (
	ErrNoSuchProduct = errors.New("no such product")
	ErrNoSuchOrder   = errors.New("no such order")
	ErrEmptyCart     = errors.New("the cart is empty")
	ErrQuantity      = fmt.Errorf("a quantity is a whole number from 1 to %d", MaxQuantity)
)

// A Product is something on sale.
type Product struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Price       int64  `json:"price"`
	Currency    string `json:"currency"`
}

// A Line is a quantity of one product, in a cart or in an order.
type Line struct {
	ProductID string `json:"productId"`
	Name      string `json:"name"`
	Price     int64  `json:"price"`
	Quantity  int64  `json:"quantity"`
	Total     int64  `json:"total"`
}

// A Cart is what a visitor has picked so far. Its version grows with every change, so that an older
// copy can be recognized.
type Cart struct {
	Version  int64  `json:"version"`
	Items    []Line `json:"items"`
	Count    int64  `json:"count"`
	Total    int64  `json:"total"`
	Currency string `json:"currency"`
}

// NewCart returns the cart of the given lines, with its sums.
func NewCart(version int64, lines []Line) Cart {
	c := Cart{Version: version, Items: make([]Line, 0, len(lines)), Currency: Currency}
	for _, l := range lines {
		l.Total = l.Price * l.Quantity
		c.Items = append(c.Items, l)
		c.Count += l.Quantity
		c.Total += l.Total
	}
	return c
}

// An Order is a cart that was bought, at the prices of that moment.
type Order struct {
	ID        string    `json:"id"`
	Items     []Line    `json:"items"`
	Total     int64     `json:"total"`
	Currency  string    `json:"currency"`
	CreatedAt time.Time `json:"createdAt"`
}

// A Placement is the result of a request to place an order.
type Placement struct {
	Order Order

	// Made is false if an earlier request placed the order.
	Made bool

	// Cart is the cart after the request.
	Cart Cart
}
