//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

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
		if err := d.rolledInOrder(old, primary.GetName()); err != nil {
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

// turn is the replacement of one pod: leave is the version in which its deletion began, and come
// the one in which its successor became ready.
type turn struct {
	pod         string
	leave, come harness.Version
}

// rolledInOrder checks that one pod was replaced at a time, each of them ready before the next one
// was deleted, and that of the primary as the last one.
func (d *database) rolledInOrder(old []*unstructured.Unstructured, primary string) error {
	var turns []turn
	for _, p := range old {
		t, err := d.turnOf(p)
		if err != nil {
			return err
		}
		turns = append(turns, t)
	}
	slices.SortFunc(turns, func(a, b turn) int { return compare(a.leave, b.leave) })
	var errs []error
	for i, t := range turns[1:] {
		if compare(turns[i].come, t.leave) > 0 {
			errs = append(errs, fmt.Errorf("pod %s was replaced before the new %s was ready", t.pod, turns[i].pod))
		}
	}
	if last := turns[len(turns)-1].pod; last != primary {
		errs = append(errs, fmt.Errorf("primary was %s, and the last pod that was replaced is %s", primary, last))
	}
	return errors.Join(errs...)
}

func (d *database) turnOf(old *unstructured.Unstructured) (turn, error) {
	t := turn{pod: old.GetName()}
	for _, v := range d.world.History("Pod", old.GetName()) {
		mine := v.Object.GetUID() == old.GetUID()
		switch {
		case mine && t.leave.Object == nil && (v.Deleted || v.Object.GetDeletionTimestamp() != nil):
			t.leave = v
		case !mine && t.leave.Object != nil && t.come.Object == nil && harness.ClaimOf(v.Object).Is("Ready"):
			t.come = v
		}
	}
	if t.leave.Object == nil || t.come.Object == nil {
		return t, fmt.Errorf("pod %s was not replaced by one that is ready", t.pod)
	}
	return t, nil
}

// compare compares the revisions of two versions, which is possible within one API server.
func compare(a, b harness.Version) int {
	c, err := resourceversion.CompareResourceVersion(a.Revision(), b.Revision())
	if err != nil {
		return 0
	}
	return c
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
