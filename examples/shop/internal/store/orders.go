package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// PlaceOrder turns the session's cart into the order with the given id, in one transaction. It
// reads the cart from the database and never from a cache: what is sold is what was stored.
//
// It may be called any number of times with the same id, or with another id and the same key, and
// places one order. An empty key means no key.
func (s *Store) PlaceOrder(ctx context.Context, session, id, key string) (shop.Placement, error) {
	// It is repeatable: the second run finds the order of the first one by its id.
	placement, err := retry(ctx, s, repeatable, func(ctx context.Context) (shop.Placement, error) {
		return s.engine.PlaceOrder(ctx, session, id, key)
	})
	if err != nil {
		return shop.Placement{}, fmt.Errorf("cannot place the order: %w", err)
	}
	return placement, nil
}

// Order returns an order of the session. An order of another session does not exist for it.
func (s *Store) Order(ctx context.Context, session, id string) (shop.Order, error) {
	order, err := retry(ctx, s, repeatable, func(ctx context.Context) (shop.Order, error) {
		return s.engine.Order(ctx, session, id)
	})
	switch {
	case errors.Is(err, shop.ErrNoSuchOrder):
		return shop.Order{}, shop.ErrNoSuchOrder
	case err != nil:
		return shop.Order{}, fmt.Errorf("cannot read the order: %w", err)
	}
	return order, nil
}

// Orders returns the latest orders of the session, the newest first.
func (s *Store) Orders(ctx context.Context, session string, limit int) ([]shop.Order, error) {
	orders, err := retry(ctx, s, repeatable, func(ctx context.Context) ([]shop.Order, error) {
		return s.engine.Orders(ctx, session, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the orders: %w", err)
	}
	return orders, nil
}
