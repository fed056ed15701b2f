package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// Cart returns the cart of a session. One that was never filled is empty.
func (s *Store) Cart(ctx context.Context, session string) (shop.Cart, error) {
	cart, err := retry(ctx, s, repeatable, func(ctx context.Context) (shop.Cart, error) {
		return s.engine.Cart(ctx, session)
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
	// A second run would add the quantity a second time.
	return s.changeCart(ctx, unrepeatable, func(ctx context.Context) (shop.Cart, error) {
		return s.engine.AddToCart(ctx, session, product, quantity)
	})
}

// SetInCart sets the quantity of a product in the cart. 0 removes the product.
func (s *Store) SetInCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error) {
	if quantity < 0 || quantity > shop.MaxQuantity {
		return shop.Cart{}, shop.ErrQuantity
	}
	return s.changeCart(ctx, repeatable, func(ctx context.Context) (shop.Cart, error) {
		return s.engine.SetInCart(ctx, session, product, quantity)
	})
}

// EmptyCart removes all products from the cart.
func (s *Store) EmptyCart(ctx context.Context, session string) (shop.Cart, error) {
	return s.changeCart(ctx, repeatable, func(ctx context.Context) (shop.Cart, error) {
		return s.engine.EmptyCart(ctx, session)
	})
}

// PruneCarts deletes the carts that were not changed for the given time, and returns their number.
func (s *Store) PruneCarts(ctx context.Context, untouched time.Duration) (int64, error) {
	pruned, err := retry(ctx, s, repeatable, func(ctx context.Context) (int64, error) {
		return s.engine.PruneCarts(ctx, untouched)
	})
	if err != nil {
		return 0, fmt.Errorf("cannot delete old carts: %w", err)
	}
	return pruned, nil
}

// changeCart runs change, which returns the changed cart.
func (s *Store) changeCart(ctx context.Context, o outcome, change func(ctx context.Context) (shop.Cart, error)) (shop.Cart, error) {
	cart, err := retry(ctx, s, o, change)
	switch {
	case errors.Is(err, shop.ErrNoSuchProduct):
		return shop.Cart{}, shop.ErrNoSuchProduct
	case err != nil:
		return shop.Cart{}, fmt.Errorf("cannot change the cart: %w", err)
	}
	return cart, nil
}
