package store

import (
	"context"
	"fmt"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// Products returns the catalogue, in the order of its positions.
func (s *Store) Products(ctx context.Context) ([]shop.Product, error) {
	products, err := retry(ctx, s, repeatable, s.engine.Products)
	if err != nil {
		return nil, fmt.Errorf("cannot read the products: %w", err)
	}
	return products, nil
}
