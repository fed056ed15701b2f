package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// accounts is the number of rows of which each transaction of a measurement changes one.
const accounts = 10_000

type benchCmd struct {
	Clients int           `default:"4"   help:"Number of connections."`
	For     time.Duration `default:"20s" help:"Length of the measurement."`
}

// Run measures a MySQL by transactions that each change a row and insert another, and prints the commits
// per second and the 99th percentile of a transaction's duration in milliseconds.
func (c *benchCmd) Run(ctx context.Context) error {
	s, err := connect(ctx, "mysql")
	if err != nil {
		return err
	}
	defer s.close(ctx)
	db := s.(*mySQL).db //nolint:forcetypeassert // It is what connect returns for this engine.
	if err := prepareAccounts(ctx, db); err != nil {
		return err
	}
	db.SetMaxOpenConns(c.Clients)
	db.SetMaxIdleConns(c.Clients)
	took := make([][]time.Duration, c.Clients)
	errs := make([]error, c.Clients)
	start := time.Now()
	var all sync.WaitGroup
	for i := range c.Clients {
		all.Go(func() {
			for time.Since(start) < c.For && errs[i] == nil {
				begin := time.Now()
				errs[i] = transact(ctx, db)
				took[i] = append(took[i], time.Since(begin))
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	durations := slices.Sorted(slices.Values(slices.Concat(took...)))
	p99 := durations[(len(durations)-1)*99/100]
	fmt.Printf("%.1f\n%.3f\n", float64(len(durations))/elapsed.Seconds(), float64(p99.Microseconds())/1000)
	return nil
}

// prepareAccounts creates and fills the tables of a measurement, unless they are there.
func prepareAccounts(ctx context.Context, db *sql.DB) error {
	for _, s := range []string{
		"CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY, balance bigint NOT NULL, filler char(84) NOT NULL)",
		"CREATE TABLE IF NOT EXISTS history (id bigint AUTO_INCREMENT PRIMARY KEY, account int NOT NULL, delta int NOT NULL, at timestamp DEFAULT CURRENT_TIMESTAMP, filler char(22))",
		fmt.Sprintf("SET SESSION cte_max_recursion_depth = %d", accounts+1),
		fmt.Sprintf("INSERT IGNORE INTO accounts WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < %d) SELECT seq, 0, '' FROM n", accounts),
	} {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("cannot prepare the tables of a measurement: %w", err)
		}
	}
	return nil
}

func transact(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("cannot begin a transaction: %w", err)
	}
	account, delta := 1+rand.IntN(accounts), rand.IntN(10_000)-5_000 //nolint:gosec // They are no secret.
	// Without arguments the driver needs one round trip for each statement.
	for _, s := range []string{
		fmt.Sprintf("UPDATE accounts SET balance = balance + %d WHERE id = %d", delta, account),
		fmt.Sprintf("INSERT INTO history (account, delta) VALUES (%d, %d)", account, delta),
	} {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return errors.Join(fmt.Errorf("cannot execute a transaction: %w", err), tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("cannot commit a transaction: %w", err)
	}
	return nil
}
