package cli

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/internal/xrd"
)

type exportCmd struct {
	clusterFlags

	Namespace     string `help:"Namespace whose claims are exported. By default the kubeconfig's." short:"n" xor:"namespace"`
	AllNamespaces bool   `help:"Export the claims of all namespaces."                              short:"A" xor:"namespace"`
}

// Run the command.
func (c *exportCmd) Run(ctx context.Context, s streams) error {
	config, namespace, err := c.config()
	if err != nil {
		return err
	}
	switch {
	case c.AllNamespaces:
		namespace = ""
	case c.Namespace != "":
		namespace = c.Namespace
	}
	live, err := state.NewLive(config)
	if err != nil {
		return err
	}
	schemas, err := xrd.LoadReleased(apis.Definitions)
	if err != nil {
		return err
	}
	objects, err := live.Export(ctx, schemas.Kinds(), namespace)
	if err != nil {
		return err
	}
	for _, u := range objects {
		if err := printObject(s, u); err != nil {
			return err
		}
	}
	for _, u := range live.Unknown() {
		fmt.Fprintf(s.err, "note: %s\n", u)
	}
	return nil
}

func printObject(s streams, u *unstructured.Unstructured) error {
	b, err := yaml.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("cannot print %s/%s: %w", u.GetKind(), u.GetName(), err)
	}
	_, err = fmt.Fprintf(s.out, "---\n%s", b)
	return err
}
