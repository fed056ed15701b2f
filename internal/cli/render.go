package cli

import (
	"context"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/compositions"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/xrd"
)

const functionPackage = "github.com/storeplane/storeplane/cmd/function"

// offline holds the arguments of all commands that need no cluster.
type offline struct {
	images.Flags

	Claim    string `arg:"" help:"YAML file with one claim." name:"file"`
	Settings string `help:"YAML file with the installation's EnvironmentConfig storeplane." short:"s"`
}

func (o *offline) load(s streams) (*render.Renderer, render.Input, error) {
	in := render.Input{}
	var err error
	if in.Claim, err = render.LoadClaim(o.Claim); err != nil {
		return nil, in, err
	}
	if in.Cluster, err = load(o.Settings, s.in); err != nil {
		return nil, in, err
	}
	schemas, err := xrd.LoadReleased(apis.Definitions)
	if err != nil {
		return nil, in, err
	}
	own, err := o.Set()
	if err != nil {
		return nil, in, err
	}
	r := &render.Renderer{
		Schemas:      schemas,
		Compositions: compositions.Files,
		Function:     functions.New(functions.WithReview(), functions.WithImages(own)),
	}
	return r, in, nil
}

// printed writes the output of a command, also of one that fails.
func printed(s streams, out []byte, err error) error {
	if _, werr := s.out.Write(out); werr != nil {
		return werr
	}
	return err
}

type convergeCmd struct{ offline }

// Run runs the command.
func (c *convergeCmd) Run(ctx context.Context, s streams) error {
	r, in, err := c.load(s)
	if err != nil {
		return err
	}
	out, err := r.Converged(ctx, in)
	return printed(s, out, err)
}

type policyCmd struct{ offline }

// Run runs the command.
func (c *policyCmd) Run(s streams) error {
	r, in, err := c.load(s)
	if err != nil {
		return err
	}
	out, err := r.Policy(in)
	return printed(s, out, err)
}

type renderCmd struct {
	offline

	Observed       string `help:"YAML file or folder of files with what the claim composed so far, as the cluster has it." short:"o"`
	CrossplaneCLI  string `env:"CROSSPLANE_CLI"      help:"The crossplane command line tool."                                name:"crossplane-cli"`
	CrossplaneCore string `env:"CROSSPLANE_CORE"     help:"Crossplane's own binary."                                         name:"crossplane-core"`
	Function       string `env:"STOREPLANE_FUNCTION" help:"Storeplane's function binary. Built from this source if not given."`
}

// Run runs the command.
func (c *renderCmd) Run(ctx context.Context, s streams) error {
	r, in, err := c.load(s)
	if err != nil {
		return err
	}
	if in.Observed, err = load(c.Observed, s.in); err != nil {
		return err
	}
	// An invalid claim is refused without the tools.
	if err := r.Schemas.Validate(in.Claim); err != nil {
		return err
	}
	tools := render.Tools{
		CLI:          c.CrossplaneCLI,
		Core:         c.CrossplaneCore,
		Function:     c.Function,
		FunctionArgs: []string{"--image-registry=" + c.ImageRegistry, "--images=" + c.Images},
	}
	if err := tools.Check(); err != nil {
		return err
	}
	if tools.Function == "" {
		if tools.Function, err = render.BuildFunction(ctx, functionPackage); err != nil {
			return err
		}
	}
	out, err := r.Crossplane(ctx, tools, in)
	return printed(s, out, err)
}
