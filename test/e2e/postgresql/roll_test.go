//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// rolls rolls to the minor version that the servers already run, which is another image name, and
// back.
func (d *database) rolls(ctx context.Context, n notes) error {
	have, err := d.ask(ctx, "postgres", "SHOW server_version")
	if err != nil {
		return err
	}
	minor, _, _ := strings.Cut(have, " ")
	for _, version := range []string{minor, "17"} {
		old, primary := d.pods(), d.primary()
		start := time.Now()
		if err := d.change(ctx, harness.Patch{"version": version}); err != nil {
			return err
		}
		for _, p := range old {
			if err := d.replaced(ctx, "Pod", p); err != nil {
				return fmt.Errorf("%w (%s)", err, d.status())
			}
		}
		if err := d.whole(ctx, baseSize); err != nil {
			return err
		}
		for _, p := range d.pods() {
			// Images of a release have a digest.
			if image, _, _ := strings.Cut(imageOf(p), "@"); !strings.HasSuffix(image, "postgresql:"+version) {
				return fmt.Errorf("pod %s runs %s, not version %s", p.GetName(), image, version)
			}
		}
		if err := d.world.RolledInOrder(old, primary.GetName()); err != nil {
			return err
		}
		n.Addf("to %s in %.0fs", version, time.Since(start).Seconds())
	}
	return nil
}

// imageOf returns the image of the database's own container, which is not the first one of the pod.
func imageOf(p *unstructured.Unstructured) string {
	for _, c := range harness.Containers(p) {
		if c["name"] == container {
			image, _ := c["image"].(string)
			return image
		}
	}
	return ""
}

// missesImage sets a minor version without an image.
func (d *database) missesImage(ctx context.Context, n notes) error {
	primary := d.primary()
	start := time.Now()
	if err := d.change(ctx, harness.Patch{"version": "17.99"}); err != nil {
		return err
	}
	if err := d.says(ctx, settled, "postgresql:17.99"); err != nil {
		return err
	}
	n.Addf("said after %.1fs", time.Since(start).Seconds())
	if c := d.status(); c.Is("Ready") {
		return fmt.Errorf("the claim is Ready all the same: %s", c)
	}
	start = time.Now()
	if err := d.change(ctx, harness.Patch{"version": "17"}); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	// The server of the backups' volume was changed to that version too.
	if err := d.hasRepository(ctx, 1); err != nil {
		return err
	}
	n.Addf("healed after %.1fs", time.Since(start).Seconds())
	if d.primary().GetUID() != primary.GetUID() {
		return errors.New("the primary was replaced too")
	}
	return nil
}
