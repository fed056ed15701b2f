package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

type loadCmd struct {
	Engine string `arg:"" help:"postgresql, mysql or mongodb."`
	Rows   int    `default:"120000" help:"Number of rows of the largest table."`
	Bulk   int    `help:"MiB of random bytes in another table."`
}

// Run fills the database.
func (c *loadCmd) Run(ctx context.Context) error {
	s, err := connect(ctx, c.Engine)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	return s.load(ctx, c.Rows, c.Bulk)
}

type sumsCmd struct {
	Engine string `arg:"" help:"postgresql, mysql or mongodb."`
}

// Run prints a line for each table or collection: its name, rows and sum.
func (c *sumsCmd) Run(ctx context.Context) error {
	s, err := connect(ctx, c.Engine)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	sums, err := s.sums(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Printf("%s\t%d\t%s\n", name, sums[name].rows, sums[name])
	}
	return nil
}

type execCmd struct {
	Engine    string `arg:"" help:"postgresql or mysql."`
	Statement string `arg:"" help:"Statement to run."`
}

// Run runs the statement and prints the first column of its rows.
func (c *execCmd) Run(ctx context.Context) error {
	s, err := connect(ctx, c.Engine)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	rows, err := s.exec(ctx, c.Statement)
	if err != nil {
		return err
	}
	for _, r := range rows {
		fmt.Println(r)
	}
	return nil
}

type dropCmd struct {
	Engine   string `arg:"" help:"postgresql, mysql or mongodb."`
	Database string `arg:"" help:"Database to drop."`
}

// Run drops the database.
func (c *dropCmd) Run(ctx context.Context) error {
	s, err := connect(ctx, c.Engine)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	return s.drop(ctx, c.Database)
}

type waitCmd struct{}

// Run waits until the process is stopped.
func (*waitCmd) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
