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

// rolls: for a parameter that needs a start, and for its removal, the pods are replaced one at a time, that of the primary
// last, and the value holds on all servers.
func (d *database) rolls(ctx context.Context, _ notes) error {
	const ask = "SELECT @@thread_stack"
	was, err := d.sqlAt(ctx, d.primary(), ask)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		parameters any
		want       string
	}{{harness.Patch{"thread_stack": "2M"}, "2097152"}, {nil, strings.TrimSpace(was)}} {
		if err := d.rollsBy(ctx, harness.Patch{"parameters": step.parameters}); err != nil {
			return fmt.Errorf("to %s: %w", step.want, err)
		}
		for _, p := range d.pods() {
			if got, err := d.sqlAt(ctx, p, ask); err != nil || strings.TrimSpace(got) != step.want {
				return fmt.Errorf("pod %s has %q, not %s: %w", p.GetName(), got, step.want, err)
			}
		}
	}
	return nil
}

// rollsVersion rolls to the release that the servers already run, which is another name of its image, and back.
func (d *database) rollsVersion(ctx context.Context, n notes) error {
	running, err := d.release(ctx)
	if err != nil {
		return err
	}
	for _, version := range []string{running, "9.7"} {
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

// release returns the release of MySQL that the primary runs, such as 9.7.4.
func (d *database) release(ctx context.Context) (string, error) {
	out, err := d.sqlAt(ctx, d.primary(), "SELECT VERSION()")
	release, _, _ := strings.Cut(strings.TrimSpace(out), "-")
	if err == nil && strings.Count(release, ".") != 2 {
		err = fmt.Errorf("the primary's version is %q, which is no release", out)
	}
	return release, err
}

// rollsBy makes a change for which all pods are replaced, and checks their order.
func (d *database) rollsBy(ctx context.Context, change harness.Patch) error {
	old, primary := d.pods(), d.primary().GetName()
	if err := d.change(ctx, change); err != nil {
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
	return d.world.RolledInOrder(old, primary)
}

// failsToStart: a parameter with which MySQL does not start stops at the first server that is replaced. The claim says why, and
// the others continue.
func (d *database) failsToStart(ctx context.Context, n notes) error {
	before, primary, start := d.uids(), d.primary(), time.Now()
	if err := d.change(ctx, harness.Patch{"parameters": harness.Patch{"event_scheduler": "much"}}); err != nil {
		return err
	}
	if err := d.says(ctx, settled, "Error while setting value 'much'"); err != nil {
		return err
	}
	n.Addf("reported after %.0fs: %s", time.Since(start).Seconds(), d.status().Status.Message)
	return d.world.Hold(ctx, leaderless, "all other servers stay", func() (bool, string) {
		kept := 0
		for pod, uid := range d.uids() {
			if before[pod] == uid {
				kept++
			}
		}
		p := d.primary()
		return kept == baseSize-1 && p != nil && p.GetUID() == primary.GetUID(), fmt.Sprintf("%d pods are those of before; %s", kept, d.status())
	})
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
