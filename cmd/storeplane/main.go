// Command storeplane reviews claims: what they compose, and what an edit of one does to what runs.
package main

import (
	"os"

	"github.com/storeplane/storeplane/internal/cli"
)

func main() { os.Exit(cli.Main("storeplane", os.Args[1:])) }
