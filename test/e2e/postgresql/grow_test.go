//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// grows expands every volume by 10Gi. Volumes cannot shrink, so the claim keeps the new size.
func (d *database) grows(ctx context.Context, n notes) error {
	have, err := resource.ParseQuantity(d.spec("storageSize"))
	if err != nil {
		return fmt.Errorf("cannot parse storageSize: %w", err)
	}
	want := have.DeepCopy()
	want.Add(resource.MustParse("10Gi"))
	before := d.uids()
	start := time.Now()
	if err := d.change(ctx, harness.Patch{"storageSize": want.String()}); err != nil {
		return err
	}
	if err := d.grown(ctx, want, baseSize); err != nil {
		return err
	}
	n.Addf("%s to %s in %.1fs", &have, &want, time.Since(start).Seconds())
	if after := d.uids(); !maps.Equal(before, after) {
		return fmt.Errorf("the pods were %v, are %v", before, after)
	}
	err = d.change(ctx, harness.Patch{"storageSize": have.String()}, metav1.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("storageSize may not shrink: %s to %s", &want, &have)) {
		return fmt.Errorf("shrinking was not refused in words: %w", err)
	}
	if !tests.Full() {
		return nil
	}
	// A later server has the same size. The template of the StatefulSet cannot be changed, and its
	// volume may be an old one.
	if err := d.change(ctx, harness.Patch{"size": baseSize + 1}); err != nil {
		return err
	}
	return errors.Join(d.whole(ctx, baseSize+1), d.grown(ctx, want, baseSize+1))
}

// grown waits until the volumes of the first servers have at least this size.
func (d *database) grown(ctx context.Context, want resource.Quantity, servers int) error {
	return d.world.Await(ctx, settled, fmt.Sprintf("volumes of %s", &want), func() (bool, string) {
		for i := range servers {
			name := "data-" + server(i)
			have, err := resource.ParseQuantity(harness.Field(d.world.Get("PersistentVolumeClaim", name), "status", "capacity", "storage"))
			if err != nil || have.Cmp(want) < 0 {
				return false, fmt.Sprintf("%s has %s; %s", name, &have, d.status())
			}
		}
		return true, ""
	})
}
