//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// edit is a user's edit of a composed object.
type edit struct{ what, patch string }

func deploymentDrift(ctx context.Context, n notes) error {
	return putBack(ctx, n, "Deployment", backendWeb,
		edit{"image", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"` + image("frontend", "v1") + `"}]}}}}`},
		edit{"replicas", `{"spec":{"replicas":3}}`},
		edit{"template's environment", `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"PORT","value":"9999"}]}]}}}}`},
	)
}

func serviceDrift(ctx context.Context, n notes) error {
	return putBack(ctx, n, "Service", backendWeb,
		edit{"selector", `{"spec":{"selector":{"app.kubernetes.io/component":"another","another":"one"}}}`},
		edit{"target port", `{"spec":{"ports":[{"port":8080,"targetPort":9999}]}}`},
	)
}

// servicePortDrift replaces the Service's port. Server-side apply identifies entries by their
// number and keeps those of other field managers, so the entry of Storeplane is added again beside
// the other one.
func servicePortDrift(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	before := dev.world.Get("Service", backendWeb)
	start := time.Now()
	if _, err := cluster.PatchList(ctx, "Service", dev.namespace, backendWeb, `{"spec":{"ports":[{"$patch":"replace"},{"name":"http","port":9999,"targetPort":"http","protocol":"TCP"}]}}`); err != nil {
		return err
	}
	err := dev.world.Await(ctx, soon, "port 8080 of Service "+backendWeb+" to be put back", func() (bool, string) {
		numbers := ports(dev.world.Get("Service", backendWeb))
		return slices.Equal(numbers, []int64{8080, 9999}), fmt.Sprintf("its ports are %v\n%s", numbers, dev.world.Claim("WebApp", backendClaim))
	})
	n.Addf("port %.1fs", time.Since(start).Seconds())

	// The other entry has to be removed by hand.
	_, cleaned := cluster.PatchList(ctx, "Service", dev.namespace, backendWeb, `{"spec":{"ports":[{"$patch":"delete","port":9999}]}}`)
	gone := dev.world.Await(ctx, soon, "Service "+backendWeb+" to be as it was", func() (bool, string) {
		diff := cmp.Diff(spec(before), spec(dev.world.Get("Service", backendWeb)))
		return diff == "", "it differs (-before, +now):\n" + diff
	})
	return errors.Join(err, cleaned, gone, dev.ready(ctx, settled))
}

// ports returns the port numbers of a Service, sorted.
func ports(service *unstructured.Unstructured) []int64 {
	list, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	out := make([]int64, 0, len(list))
	for _, p := range list {
		if m, ok := p.(map[string]any); ok {
			number, _, _ := unstructured.NestedInt64(m, "port")
			out = append(out, number)
		}
	}
	slices.Sort(out)
	return out
}

// putBack makes each edit and waits until the object's spec is as it was.
func putBack(ctx context.Context, n notes, kind, name string, edits ...edit) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	before := spec(dev.world.Get(kind, name))
	var errs []error
	for _, e := range edits {
		start := time.Now()
		edited, err := cluster.PatchList(ctx, kind, dev.namespace, name, e.patch)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot edit the %s: %w", e.what, err))
			continue
		}
		if cmp.Equal(before, spec(edited)) {
			errs = append(errs, fmt.Errorf("the edit of the %s changed nothing: this test has to be mended", e.what))
			continue
		}
		err = dev.world.Await(ctx, soon, "the "+e.what+" of "+kind+" "+name+" to be put back", func() (bool, string) {
			u := dev.world.Get(kind, name)
			if seen(dev.world.History(kind, name), edited) {
				diff := cmp.Diff(before, spec(u))
				return diff == "", fmt.Sprintf("it differs (-before, +now):\n%s\n%s", diff, dev.world.Claim("WebApp", backendClaim))
			}
			return false, "the edit has not been seen yet"
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		n.Addf("%s %.1fs", e.what, time.Since(start).Seconds())
	}
	if len(errs) > 0 {
		// Restore the spec by hand for the checks that follow.
		_, err := cluster.Patch(ctx, kind, dev.namespace, name, harness.Patch{"spec": before})
		errs = append(errs, err)
	}
	return errors.Join(append(errs, dev.ready(ctx, settled))...)
}

func spec(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	s, _, _ := unstructured.NestedMap(u.Object, "spec")
	return s
}

// seen reports whether the watch has delivered a version of an object.
func seen(history []harness.Version, u *unstructured.Unstructured) bool {
	for _, v := range history {
		if v.Revision() == u.GetResourceVersion() {
			return true
		}
	}
	return false
}
