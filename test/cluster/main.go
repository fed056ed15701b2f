// Command cluster runs a real one-node Kubernetes cluster with Crossplane, built from Go modules
// and Debian packages only. It needs no container engine, no image registry, and no download
// except from the Go module proxy and the machine's own Debian mirror. The tests of Storeplane
// run against it.
//
// The programs of the control plane and the node run as ordinary processes of the machine. They
// write their files to one state folder. The command down removes that folder and everything else
// that up has changed, and leaves processes, network rules and mounts alone that up did not
// create.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Up       upCmd       `cmd:"" help:"Start the cluster, or whatever of it does not run, and wait until Crossplane is ready."`
	Down     downCmd     `cmd:"" help:"Stop the cluster and remove everything but the cache."`
	Status   statusCmd   `cmd:"" help:"Say what runs; exits with 1 when the cluster is not up."`
	Env      envCmd      `cmd:"" help:"Print the shell lines that point tools at the cluster."`
	Tools    toolsCmd    `cmd:"" help:"Build tools unless they are cached, and print their paths. Needs no root."`
	Packages packagesCmd `cmd:"" help:"Install the Debian packages that the long tests want, unless they are there."`
	Base     baseCmd     `cmd:"" help:"Make the Debian base image unless it is cached, and print its name."`
	Image    imageCmd    `cmd:"" help:"Build an image unless nothing has changed, and save or push it."`
}

func main() {
	var args cli
	k := kong.Parse(&args,
		kong.Name("cluster"),
		kong.Description("A real one-node Kubernetes cluster with Crossplane, for tests."),
		kong.UsageOnError(),
	)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	c, err := newCluster()
	if err == nil {
		k.BindTo(ctx, (*context.Context)(nil))
		err = k.Run(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called.
	}
}
