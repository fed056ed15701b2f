// Command kubectl-storeplane is the command storeplane as a plugin of kubectl: kubectl storeplane.
package main

import (
	"os"

	"github.com/storeplane/storeplane/internal/cli"
)

func main() { os.Exit(cli.Main("kubectl storeplane", os.Args[1:])) }
