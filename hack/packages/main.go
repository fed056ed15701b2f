// Command packages builds Storeplane's Crossplane packages and the manifests to install them: the
// Function and Provider packages with their runtime images, the Configuration package with the
// definitions and compositions, and the objects that no package may contain. The images that claims
// run must have been pushed before: a release names them by their digests.
//
// It takes the registry from which the packages will be installed, since Crossplane names a
// dependency after the path of its repository, and Compositions call a function by that name.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Registry   string `help:"Registry and path to install from, for example registry.example.com/storeplane." required:""`
	Images     string `help:"Registry and path that have the images which claims run. Default: that of --registry."`
	Version    string `help:"Version of the packages, or dev for one made of their content."                     default:"dev"`
	Crossplane string `help:"The crossplane command line tool."                                                  required:"" type:"existingfile"`
	Out        string `help:"Folder to write to."                                                                 default:"_out/packages"`
	Releases   string `help:"Folder to write a release to, in a folder named after its version: all that it is installed from."`
	Push       bool   `help:"Push the packages to the registry, and the images if they are elsewhere."`
}

// Run builds the packages.
func (c *cli) Run(ctx context.Context) error {
	r, err := newRelease(c.Registry, c.Version)
	if err != nil {
		return err
	}
	local, stop, err := serveRegistry(ctx)
	if err != nil {
		return err
	}
	defer stop()
	b := builder{release: r, crossplane: c.Crossplane, out: c.Out, releases: c.Releases, images: cmp.Or(strings.TrimSuffix(c.Images, "/"), r.registry), local: local}
	if err := b.build(ctx); err != nil {
		return err
	}
	if c.Releases != "" {
		if err := b.folder(ctx); err != nil {
			return err
		}
	}
	if !c.Push {
		return nil
	}
	return b.push(ctx)
}

func main() {
	args := &cli{}
	k := kong.Parse(args, kong.Description("Builds Storeplane's Crossplane packages. Run it at the root of the repository."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := args.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		stop()
		k.Exit(1)
	}
}
