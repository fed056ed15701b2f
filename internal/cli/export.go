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
	namespaceFlags
}

// Run runs the command.
func (c *exportCmd) Run(ctx context.Context, s streams) error {
	config, namespace, err := c.config()
	if err != nil {
		return err
	}
	live, err := state.NewLive(config)
	if err != nil {
		return err
	}
	schemas, err := xrd.LoadReleased(apis.Definitions)
	if err != nil {
		return err
	}
	objects, err := live.Export(ctx, schemas.Kinds(), c.of(namespace))
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
