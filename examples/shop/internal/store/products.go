package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// Products returns the catalogue, in the order of its positions.
func (s *Store) Products(ctx context.Context) ([]shop.Product, error) {
	var products []shop.Product
	err := s.query(ctx, func(ctx context.Context, q *pgxpool.Pool) error {
		rows, err := q.Query(ctx, `SELECT id, name, description, price FROM products ORDER BY position, id`)
		if err != nil {
			return err
		}
		products, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (shop.Product, error) {
			p := shop.Product{Currency: shop.Currency}
			err := row.Scan(&p.ID, &p.Name, &p.Description, &p.Price)
			return p, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the products: %w", err)
	}
	return products, nil
}
