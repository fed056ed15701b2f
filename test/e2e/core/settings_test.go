//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// putSettings replaces the settings, or deletes them if u is nil.
func putSettings(ctx context.Context, u *unstructured.Unstructured) error {
	if err := cluster.Delete(ctx, "EnvironmentConfig", "", harness.SettingsName); err != nil {
		return err
	}
	if u != nil {
		if _, err := cluster.Create(ctx, u); err != nil {
			return err
		}
	}
	return dev.touch(ctx)
}

// refusesSettings replaces the settings of the installation by invalid ones for as short a time as
// possible, and restores them.
func refusesSettings(ctx context.Context, n notes) error {
	was, err := cluster.Get(ctx, "EnvironmentConfig", "", harness.SettingsName)
	if err != nil {
		return err
	}
	var errs []error
	for _, nonsense := range []struct {
		data map[string]any
		want string
	}{
		{map[string]any{"ingress": map[string]any{"className": "Not A Class!"}}, "Accepted False: cannot use EnvironmentConfig storeplane: data.ingress.className must be the name of an IngressClass"},
		{map[string]any{"ingress": "nginx"}, "Accepted False: cannot read EnvironmentConfig storeplane: data.ingress"},
	} {
		err := refused(ctx, n, nonsense.want,
			func(ctx context.Context) error {
				return putSettings(ctx, harness.Settings(nonsense.data))
			},
			func(ctx context.Context) error {
				// Restore also after an interrupt: all claims of the cluster depend on the
				// settings.
				return putSettings(context.WithoutCancel(ctx), fresh(was))
			})
		if err != nil {
			errs = append(errs, fmt.Errorf("with %v: %w", nonsense.data, err))
		}
	}
	return errors.Join(errs...)
}

// keepsSettings deletes the settings with which claims were composed, and checks that the claims
// keep them and report it.
func keepsSettings(ctx context.Context, n notes) error {
	was, err := cluster.Get(ctx, "EnvironmentConfig", "", harness.SettingsName)
	if err != nil {
		return err
	}
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	before := uids(dev)
	says := func(want string) error {
		return dev.world.Await(ctx, settled, fmt.Sprintf("the claim to say %q", want), func() (bool, string) {
			text := fmt.Sprintf("settings %s\n%s", dev.status().Status.AcceptedSettings, words(dev.status()))
			return strings.Contains(text, want), text
		})
	}
	steps := func() error {
		if err := errors.Join(putSettings(ctx, harness.Settings(map[string]any{"monitoring": map[string]any{"namespace": "monitoring"}})), says(`settings {"monitoring":{"namespace":"monitoring"}}`)); err != nil {
			return err
		}
		if err := errors.Join(putSettings(ctx, nil), says("Accepted False: EnvironmentConfig storeplane, with whose settings this claim was composed, does not exist: create it again")); err != nil {
			return err
		}
		if !dev.status().Is("Ready") {
			return fmt.Errorf("a claim that goes on with the settings that it had is not ready: %s", dev.status())
		}
		return nil
	}
	err = steps()
	// Settings without data mean the defaults, and can then be deleted. Restore also after an
	// interrupt: all claims of the cluster depend on them.
	undo := context.WithoutCancel(ctx)
	err = errors.Join(err, putSettings(undo, harness.Settings(map[string]any{})), says("settings {}\n"), putSettings(undo, fresh(was)), dev.ready(ctx, settled))
	if after := uids(dev); !slices.Equal(before, after) {
		err = errors.Join(err, fmt.Errorf("the pods were %v, are %v", before, after))
	}
	n.Addf("%d pods stayed", len(before))
	return err
}

// fresh returns a copy of an object that can be created again, or nil for nil.
func fresh(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	data, _, _ := unstructured.NestedMap(u.Object, "data")
	out := harness.Settings(data)
	out.SetLabels(u.GetLabels())
	out.SetAnnotations(u.GetAnnotations())
	return out
}
