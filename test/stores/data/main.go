// Command data fills the databases of the end-to-end tests and computes checksums of their rows,
// so that two databases can be compared. It also manipulates the folders of stores, whose images
// contain no other tools.
//
// Connections are read from standard input, so that no password is in a list of processes.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Load  loadCmd  `cmd:"" help:"Fill a database."`
	Sums  sumsCmd  `cmd:"" help:"Print a line for each table or collection: its name, the number of its rows, and a sum over all of them."`
	Exec  execCmd  `cmd:"" help:"Run a statement and print the first column of what it returns."`
	Drop  dropCmd  `cmd:"" help:"Drop a database and, where there are such things, create it anew."`
	Bench benchCmd `cmd:"" help:"Measure commits per second of a MySQL, and the 99th percentile of their duration in milliseconds."`

	Mkdir     mkdirCmd     `cmd:"" help:"Make folders, as buckets of stores that keep them so."`
	Container containerCmd `cmd:"" help:"Make a container in a Blob Storage. The key, and below it the certificate of the authority, are read from standard input."`
	Ls        lsCmd        `cmd:"" help:"Print all files below a folder with their sizes."`
	Flip      flipCmd      `cmd:"" help:"Change the byte in the middle of a file."`
	Grep      grepCmd      `cmd:"" help:"Print how often a text is in a file."`
	Put       putCmd       `cmd:"" help:"Upload standard input."`
	Rm        rmCmd        `cmd:"" help:"Remove a file or a folder."`
	Age       ageCmd       `cmd:"" help:"Copy a backup's folder to one that is older."`
	Wait      waitCmd      `cmd:"" help:"Do nothing until told to stop."`
}

func main() {
	args := cli{}
	k := kong.Parse(&args, kong.Description("Data for tests."), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.BindTo(ctx, (*context.Context)(nil))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "data:", err)
		os.Exit(1) //nolint:gocritic // The deferred stop is not needed.
	}
}

// server is a connection to a database server.
type server interface {
	// load creates tables, with the given number of rows in the largest, and of MiB in another.
	load(ctx context.Context, rows, bulk int) error
	// sums returns the sums of all tables and of the catalog, by name.
	sums(ctx context.Context) (map[string]*sum, error)
	exec(ctx context.Context, statement string) ([]string, error)
	drop(ctx context.Context, database string) error
	close(ctx context.Context)
}

// connect connects to the server whose URI is on standard input.
func connect(ctx context.Context, engine string) (server, error) {
	raw, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, fmt.Errorf("cannot read a connection: %w", err)
	}
	uri := strings.TrimSpace(string(raw))
	switch engine {
	case "postgresql":
		return connectPostgreSQL(ctx, uri)
	case "mysql":
		return connectMySQL(ctx, uri)
	case "mongodb":
		return connectMongoDB(ctx, uri)
	}
	return nil, fmt.Errorf("cannot connect to %q: the engines are postgresql, mysql and mongodb", engine)
}
