// Command render prints what a claim becomes, without a cluster: what
// Crossplane makes of it in one go, or with --converge everything that it will
// ever make; or with --policy what the guardrails say of it. Errors of the claim
// go to stderr, and nothing but the guardrails' report to stdout.
package main

import (
	"context"
	"os"

	"github.com/alecthomas/kong"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/compositions"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/xrd"
)

const functionPackage = "github.com/storeplane/storeplane/cmd/function"

// cli is the command's flags.
type cli struct {
	Claim string `arg:"" help:"YAML file with one claim." name:"file"`

	Converge bool   `help:"Print every object that the claim will ever make, in order, as if all went well." short:"c" xor:"what"`
	Policy   bool   `help:"Print what the guardrails say of the claim, as a PolicyReport, and fail if it breaks one." short:"p" xor:"what"`
	Observed string `help:"YAML file or folder of files with what the claim composed so far, as the cluster has it."        short:"o"`
	Settings string `help:"YAML file with the installation's EnvironmentConfig storeplane."                                  short:"s"`

	images.Flags

	CrossplaneCLI  string `env:"CROSSPLANE_CLI"      help:"The crossplane command line tool."                                name:"crossplane-cli"`
	CrossplaneCore string `env:"CROSSPLANE_CORE"     help:"Crossplane's own binary."                                         name:"crossplane-core"`
	Function       string `env:"STOREPLANE_FUNCTION" help:"Storeplane's function binary. Built from this source if not given."`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("render"), kong.Description("Prints what a claim becomes, without a cluster."))
	k.FatalIfErrorf(c.run(context.Background()))
}

func (c *cli) run(ctx context.Context) error {
	in, err := c.load()
	if err != nil {
		return err
	}
	schemas, err := xrd.Load(apis.Definitions)
	if err != nil {
		return err
	}
	own, err := c.Set()
	if err != nil {
		return err
	}
	r := &render.Renderer{
		Schemas:      schemas,
		Compositions: compositions.Files,
		Function:     functions.New(functions.WithReview(), functions.WithImages(own)),
	}

	out, err := c.render(ctx, r, in)
	if _, werr := os.Stdout.Write(out); werr != nil {
		return werr
	}
	return err
}

func (c *cli) load() (render.Input, error) {
	in := render.Input{}
	var err error
	if in.Claim, err = render.LoadClaim(c.Claim); err != nil {
		return in, err
	}
	if in.Observed, err = load(c.Observed); err != nil {
		return in, err
	}
	in.Cluster, err = load(c.Settings)
	return in, err
}

func load(path string) ([]*unstructured.Unstructured, error) {
	if path == "" {
		return nil, nil
	}
	return render.Load(path)
}

func (c *cli) render(ctx context.Context, r *render.Renderer, in render.Input) ([]byte, error) {
	if c.Policy {
		return r.Policy(in)
	}
	if c.Converge {
		return r.Converged(ctx, in)
	}
	// An invalid claim needs no tools to be refused.
	if err := r.Schemas.Validate(in.Claim); err != nil {
		return nil, err
	}
	tools := render.Tools{
		CLI:          c.CrossplaneCLI,
		Core:         c.CrossplaneCore,
		Function:     c.Function,
		FunctionArgs: []string{"--image-registry=" + c.ImageRegistry, "--images=" + c.Images},
	}
	if err := tools.Check(); err != nil {
		return nil, err
	}
	if tools.Function == "" {
		var err error
		if tools.Function, err = render.BuildFunction(ctx, functionPackage); err != nil {
			return nil, err
		}
	}
	return r.Crossplane(ctx, tools, in)
}
