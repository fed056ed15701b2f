// Command xrdgen writes the CompositeResourceDefinition of every claim from its Go types. It runs
// controller-gen on the given packages, and converts each CustomResourceDefinition into the form
// that Crossplane takes, beside the types in <kind>/definition.yaml.
//
// It fails rather than write a definition that would lose a part of its schema in Crossplane, or
// whose CustomResourceDefinition an API server would refuse.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

type cli struct {
	Packages []string `arg:""                           help:"Packages of the claims' Go types."`
	Out      string   `default:"."                      help:"Folder that gets <kind>/definition.yaml."                 type:"path"`
	Tools    string   `default:"../hack/tools/go.mod"   help:"go.mod of the module that has controller-gen as a tool." type:"existingfile"`
}

func main() {
	c := cli{}
	k := kong.Parse(&c, kong.Description("Writes the CompositeResourceDefinition of every claim from its Go types."))
	k.FatalIfErrorf(c.run())
}

func (c *cli) run() error {
	crds, err := controllerGen(c.Tools, c.Packages)
	if err != nil {
		return err
	}
	for crd := range bytes.SplitSeq(crds, []byte("\n---\n")) {
		if len(bytes.TrimSpace(crd)) == 0 {
			continue
		}
		d, err := definition(crd)
		if err != nil {
			return err
		}
		if err := d.write(c.Out); err != nil {
			return err
		}
	}
	return nil
}

// controllerGen returns the CRDs of the packages as a YAML stream.
func controllerGen(tools string, packages []string) ([]byte, error) {
	args := []string{"tool", "-modfile=" + tools, "controller-gen", "crd", "output:stdout"}
	for _, p := range packages {
		args = append(args, "paths="+p)
	}
	stderr := &bytes.Buffer{}
	cmd := exec.Command("go", args...) //nolint:noctx // an interrupt reaches it as well
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot generate CustomResourceDefinitions: %w\n%s", err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

func (d *generated) write(folder string) error {
	path := filepath.Join(folder, d.folder, "definition.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot make folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, d.yaml, 0o644); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
