//go:build e2e

package mysql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// rolls: for a parameter that needs a start the pods are replaced one at a time, and the primary hands over
// before its own.
func (d *database) rolls(ctx context.Context, _ notes) error {
	return d.rollsBy(ctx, harness.Patch{"parameters": harness.Patch{"thread_stack": "1M"}})
}

// rollsVersion rolls to the release that the servers already run, which is another name of its image, and back.
func (d *database) rollsVersion(ctx context.Context, n notes) error {
	out, err := d.sqlAt(ctx, d.primary(), "SELECT VERSION()")
	if err != nil {
		return err
	}
	release, _, _ := strings.Cut(strings.TrimSpace(out), "-")
	for _, version := range []string{release, "9.7"} {
		start := time.Now()
		if err := d.rollsBy(ctx, harness.Patch{"version": version}); err != nil {
			return fmt.Errorf("to version %s: %w", version, err)
		}
		for _, p := range d.pods() {
			// Images of a release have a digest.
			if image, _, _ := strings.Cut(imageOf(p), "@"); !strings.HasSuffix(image, "mysql:"+version) {
				return fmt.Errorf("pod %s runs %s, not version %s", p.GetName(), image, version)
			}
		}
		n.Addf("to %s in %.0fs", version, time.Since(start).Seconds())
	}
	return nil
}

// rollsBy makes a change for which all pods are replaced, and checks that the primary's was replaced last.
func (d *database) rollsBy(ctx context.Context, change harness.Patch) error {
	before, last := d.uids(), d.primary().GetName()
	if err := d.change(ctx, change); err != nil {
		return err
	}
	err := d.world.Await(ctx, soon, "the first pod to be replaced", func() (bool, string) {
		for _, p := range d.pods() {
			if before[p.GetName()] != string(p.GetUID()) {
				return true, ""
			}
		}
		return false, "none is; " + d.status().String()
	})
	if err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	for _, p := range d.pods() {
		if before[p.GetName()] == string(p.GetUID()) {
			return fmt.Errorf("pod %s was not replaced", p.GetName())
		}
		if created, until := p.GetCreationTimestamp(), d.world.Get("Pod", last).GetCreationTimestamp(); until.Before(&created) {
			return fmt.Errorf("pod %s was replaced after that of the primary, %s", p.GetName(), last)
		}
	}
	return nil
}

// imageOf returns the image of a pod's container of MySQL.
func imageOf(p *unstructured.Unstructured) string {
	for _, c := range harness.Containers(p) {
		if c["name"] == container {
			image, _ := c["image"].(string)
			return image
		}
	}
	return ""
}
