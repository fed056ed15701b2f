package harness

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SettingsName is the name of the EnvironmentConfig that all claims of the cluster read.
const SettingsName = "storeplane"

// Settings returns settings of the installation with data, or with the defaults if that is empty.
func Settings(data map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig", "data": data}}
	u.SetName(SettingsName)
	return u
}

// WithSettings calls do with other settings of the installation, and restores the former ones, also after
// an interrupt: all claims of the cluster depend on them.
func (c *Cluster) WithSettings(ctx context.Context, data map[string]any, do func() error) error {
	was, err := c.Get(ctx, "EnvironmentConfig", "", SettingsName)
	if err != nil {
		return err
	}
	put := func(ctx context.Context, data map[string]any) error {
		if err := c.Delete(ctx, "EnvironmentConfig", "", SettingsName); err != nil {
			return err
		}
		_, err := c.Create(ctx, Settings(data))
		return err
	}
	before := map[string]any{}
	if was != nil {
		before, _, _ = unstructured.NestedMap(was.Object, "data")
	}
	err = put(ctx, data)
	if err == nil {
		err = do()
	}
	return errors.Join(err, put(context.WithoutCancel(ctx), before))
}
