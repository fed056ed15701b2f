//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// lives is how often a claim for development is deleted and applied again at once.
const lives = 4

// livesTwice: deleted in development a database leaves nothing, and the next one of its name has nothing of it.
func (d *database) livesTwice(ctx context.Context, n notes) error {
	for range 2 {
		start := time.Now()
		if err := d.begins(ctx); err != nil {
			return err
		}
		n.Addf("Ready after %.1fs", time.Since(start).Seconds())
		if err := d.startStore(ctx); err != nil {
			return err
		}
		if _, err := d.sql(ctx, claimName, "CREATE TABLE lives (n INT PRIMARY KEY)"); err != nil {
			return fmt.Errorf("a new database has what one before it left: %w", err)
		}
		start = time.Now()
		if err := cluster.Delete(ctx, "DatabaseCluster", d.namespace, claimName); err != nil {
			return err
		}
		if err := d.leavesNothing(ctx); err != nil {
			return err
		}
		n.Addf("gone after %.1fs", time.Since(start).Seconds())
	}
	return nil
}

// leavesNothing waits until no object of the claim is there.
func (d *database) leavesNothing(ctx context.Context) error {
	return harness.Await(ctx, settled, "all objects of the claim to be gone", func(ctx context.Context) (bool, error) {
		all, err := cluster.Left(ctx, d.namespace)
		if err != nil {
			return false, err
		}
		var left []string
		for _, key := range all {
			if strings.Contains(key, claimName) {
				left = append(left, key)
			}
		}
		if len(left) > 0 {
			return false, fmt.Errorf("left are %v", left)
		}
		return true, nil
	})
}

// livesAtOnce deletes the claim and applies it again at once, many times.
func (d *database) livesAtOnce(ctx context.Context, n notes) error {
	if err := errors.Join(d.begins(ctx), d.startStore(ctx)); err != nil {
		return err
	}
	longest := time.Duration(0)
	for range lives {
		if _, err := d.sql(ctx, claimName, "CREATE TABLE once (n INT PRIMARY KEY)"); err != nil {
			return fmt.Errorf("a new database has what one before it left: %w", err)
		}
		if err := cluster.Delete(ctx, "DatabaseCluster", d.namespace, claimName); err != nil {
			return err
		}
		if err := d.world.AwaitGone(ctx, settled, "DatabaseCluster", claimName); err != nil {
			return err
		}
		start := time.Now()
		if err := d.begins(ctx); err != nil {
			return err
		}
		longest = max(longest, time.Since(start))
	}
	n.Addf("%d lives, Ready again after %.1fs at most", lives, longest.Seconds())
	return cluster.Delete(ctx, "DatabaseCluster", d.namespace, claimName)
}

// begins applies the claim and waits until its server is well.
func (d *database) begins(ctx context.Context) error {
	if d.world == nil {
		return errors.Join(d.claim(ctx), d.whole(ctx, 1))
	}
	u, err := manifests.Read(d.manifest, map[string]string{"NAMESPACE": d.namespace})
	if err != nil {
		return err
	}
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	return d.whole(ctx, 1)
}

// missesImage asks for a release whose image does not exist: the claim names it, the primary stays, and all is
// well once the version is the one of before.
func (d *database) missesImage(ctx context.Context, n notes) error {
	primary, start := d.primary(), time.Now()
	if err := d.change(ctx, harness.Patch{"version": "9.7.99"}); err != nil {
		return err
	}
	if err := d.says(ctx, settled, "mysql:9.7.99"); err != nil {
		return err
	}
	n.Addf("reported after %.1fs", time.Since(start).Seconds())
	if c := d.status(); c.Is("Ready") {
		return fmt.Errorf("the claim is Ready all the same: %s", c)
	}
	start = time.Now()
	if err := d.change(ctx, harness.Patch{"version": "9.7"}); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	n.Addf("healed after %.1fs", time.Since(start).Seconds())
	if p := d.primary(); p.GetUID() != primary.GetUID() {
		return errors.New("the primary was replaced, too")
	}
	return nil
}

// wakesSmaller hibernates the database, and wakes it with one server, whose volume lacks a row that the others have.
func (d *database) wakesSmaller(ctx context.Context, n notes) (err error) {
	if err := d.prepares(ctx, "CREATE TABLE woken (n INT PRIMARY KEY)"); err != nil {
		return err
	}
	first, err := d.follows(ctx, server(0))
	if err != nil {
		return err
	}
	heal, err := d.separate(ctx, first, d.others(first)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, heal()) }()
	err = eventually(ctx, "a write without the first server", func() (bool, string) {
		_, err := d.sql(ctx, claimName, "INSERT INTO woken VALUES (1)")
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	if err := d.change(ctx, harness.Patch{"size": 1}); err != nil {
		return err
	}
	if err := d.sleeps(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := d.change(ctx, harness.Patch{"hibernated": nil}); err != nil {
		return err
	}
	if err := d.whole(ctx, 1); err != nil {
		return err
	}
	n.Addf("awake after %.0fs", time.Since(start).Seconds())
	if have, err := d.rows(ctx, "woken"); err != nil || have != 1 {
		return fmt.Errorf("there was 1 row, and are %d: %w", have, err)
	}
	if _, err := d.sql(ctx, claimName, "DROP TABLE woken"); err != nil {
		return err
	}
	return d.ready(ctx)
}

// follows makes a server a replica, and returns its pod.
func (d *database) follows(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	pod := d.world.Get("Pod", name)
	if p := d.primary(); p != nil && p.GetUID() == pod.GetUID() {
		if err := errors.Join(d.deletePod(ctx, pod), d.succeeded(ctx, pod), d.whole(ctx, baseSize)); err != nil {
			return nil, err
		}
	}
	return d.world.Get("Pod", name), nil
}
