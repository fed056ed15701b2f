//go:build e2e

package mysql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// isProtected tries to delete a claim that production protects.
func (d *database) isProtected(ctx context.Context, n notes) error {
	before := d.uids()
	err := cluster.Delete(ctx, "DatabaseCluster", d.namespace, claimName)
	if err == nil || !strings.Contains(err.Error(), "deletionProtection") {
		return fmt.Errorf("the deletion is not refused with the field that has to change: %w", err)
	}
	n.Addf("%q", err.Error())
	if u, err := cluster.Get(ctx, "DatabaseCluster", d.namespace, claimName); err != nil || u == nil || u.GetDeletionTimestamp() != nil {
		return errors.Join(err, errors.New("the claim is being deleted all the same"))
	}
	return d.keptPods(before)
}

// comesBack deletes the claim and applies it again: its volumes have all acknowledged rows.
func (d *database) comesBack(ctx context.Context, n notes) error {
	if _, err := d.account(ctx, n, noTarget, func(context.Context, notes) error { return nil }); err != nil {
		return err
	}
	if err := d.startStore(ctx); err != nil {
		return err
	}
	if err := d.stopLedger(ctx); err != nil {
		return err
	}
	before, err := d.rows(ctx, "ledger")
	if err != nil {
		return err
	}
	if err := d.reclaims(ctx, n, baseSize, "ledger", before); err != nil {
		return err
	}
	// The Secret of the new claim has to work with the old volumes.
	return d.keepLedger(ctx)
}

// comesBackOtherwise claims fewer servers and more over the volumes of others: the one that leads has what only the
// newest volume has.
func (d *database) comesBackOtherwise(ctx context.Context, n notes) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	if err := d.startStore(ctx); err != nil {
		return err
	}
	if err := d.stopLedger(ctx); err != nil {
		return err
	}
	if _, err := d.sql(ctx, claimName, "CREATE TABLE kept (n INT PRIMARY KEY)"); err != nil {
		return err
	}
	// The volume of the first server lacks a row.
	if err := d.agesFirst(ctx, "INSERT INTO kept VALUES (1)"); err != nil {
		return err
	}
	if err := d.reclaims(ctx, n, 1, "kept", 1); err != nil {
		return fmt.Errorf("with one server: %w", err)
	}
	// With one server the volumes of the others become old.
	if _, err := d.sql(ctx, claimName, "INSERT INTO kept VALUES (2)"); err != nil {
		return err
	}
	if err := d.reclaims(ctx, n, baseSize, "kept", 2); err != nil {
		return fmt.Errorf("with %d servers: %w", baseSize, err)
	}
	if err := d.reclaims(ctx, n, baseSize, "kept", 2, server(1), server(2)); err != nil {
		return fmt.Errorf("with %d servers, and one volume: %w", baseSize, err)
	}
	_, err := d.sql(ctx, claimName, "DROP TABLE kept")
	return err
}

// agesFirst executes a statement while the first server is cut off, and deletes the claim.
func (d *database) agesFirst(ctx context.Context, statement string) (err error) {
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
		_, err := d.sql(ctx, claimName, statement)
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	return d.end(ctx)
}

// reclaims deletes the claim, and the volumes of some servers, applies it again with a size, and compares the rows of a
// table.
func (d *database) reclaims(ctx context.Context, n notes, size int, table string, least int, lost ...string) error {
	if d.world.Get("DatabaseCluster", claimName) != nil {
		if err := d.end(ctx); err != nil {
			return err
		}
	}
	for _, s := range lost {
		if err := d.losesKept(ctx, s); err != nil {
			return err
		}
	}
	start := time.Now()
	u, err := manifests.Read(d.manifest, map[string]string{"NAMESPACE": d.namespace})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(u.Object, int64(size), "spec", "size"); err != nil {
		return fmt.Errorf("cannot set the size: %w", err)
	}
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	if err := d.whole(ctx, size); err != nil {
		return err
	}
	n.Addf("%d servers after %.1fs", size, time.Since(start).Seconds())
	have, err := d.rows(ctx, table)
	if err == nil && have < least {
		err = fmt.Errorf("table %s has %d rows, and had %d", table, have, least)
	}
	return err
}

// losesKept deletes the volume claim of a server that does not run.
func (d *database) losesKept(ctx context.Context, server string) error {
	volume := "data-" + server
	if d.world.Get("PersistentVolumeClaim", volume) == nil {
		return fmt.Errorf("there is no volume claim %s to delete", volume)
	}
	if err := cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, volume); err != nil {
		return err
	}
	return d.world.AwaitGone(ctx, settled, "PersistentVolumeClaim", volume)
}

// losesAsleep: a member's volume is lost while all servers are stopped. It may have had the newest writes, so no server leads
// until the annotation names one of those that are left.
func (d *database) losesAsleep(ctx context.Context, n notes) error {
	if err := d.prepares(ctx, "CREATE TABLE kept (n INT PRIMARY KEY)", "INSERT INTO kept VALUES (1), (2), (3)"); err != nil {
		return err
	}
	if err := d.sleeps(ctx); err != nil {
		return err
	}
	record, err := d.record()
	if err != nil {
		return err
	}
	if volume := d.volumes()["data-"+server(1)]; volume == "" || record.Members[server(1)] != volume {
		return fmt.Errorf("%s is no member of the last group, whose members are %v", server(1), record.Members)
	}
	if err := d.losesKept(ctx, server(1)); err != nil {
		return err
	}
	if err := d.change(ctx, harness.Patch{"hibernated": nil}); err != nil {
		return err
	}
	if err := d.undecided(ctx, n, "the volume of "+server(1)+", a member of the last group, no longer exists or is empty"); err != nil {
		return err
	}
	if err := errors.Join(d.leadsWith(ctx, n, server(0)), d.whole(ctx, baseSize)); err != nil {
		return err
	}
	if have, err := d.rows(ctx, "kept"); err != nil || have != 3 {
		return fmt.Errorf("there were 3 rows, and are %d: %w", have, err)
	}
	_, err = d.sql(ctx, claimName, "DROP TABLE kept")
	return err
}

// volumes returns the UIDs of the servers' volume claims, by name.
func (d *database) volumes() map[string]string {
	out := map[string]string{}
	for _, v := range d.world.List("PersistentVolumeClaim") {
		if strings.HasPrefix(v.GetName(), "data-"+setName+"-") {
			out[v.GetName()] = string(v.GetUID())
		}
	}
	return out
}

// record returns the servers' record of their group.
func (d *database) record() (*group.Record, error) {
	r, u := &group.Record{}, d.world.Get("ConfigMap", instance.GroupName(setName))
	if u == nil {
		return nil, errors.New("there is no record of the group")
	}
	if err := json.Unmarshal([]byte(u.GetAnnotations()[instance.GroupAnnotation]), r); err != nil {
		return nil, fmt.Errorf("cannot read the record of the group: %w", err)
	}
	return r, nil
}

// rows returns how many rows a table of the application has.
func (d *database) rows(ctx context.Context, table string) (int, error) {
	text, err := d.sql(ctx, claimName, "SELECT COUNT(*) FROM "+table)
	if err != nil {
		return 0, err
	}
	rows, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("cannot read the number of rows of %s: %w", table, err)
	}
	return rows, nil
}

// end deletes the claim and waits until its objects are removed, but for its volumes, which stay.
func (d *database) end(ctx context.Context) error {
	volumes := d.volumes()
	if err := d.change(ctx, harness.Patch{"deletionProtection": false}); err != nil {
		return err
	}
	// The Usage that protects the claim is removed a moment later.
	err := harness.Await(ctx, soon, "the claim to take its deletion", func(ctx context.Context) (bool, error) {
		err := cluster.Delete(ctx, "DatabaseCluster", d.namespace, claimName)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	if err := d.world.AwaitGone(ctx, settled, "DatabaseCluster", claimName); err != nil {
		return err
	}
	err = harness.Await(ctx, settled, "all but the volumes to be gone", func(ctx context.Context) (bool, error) {
		left, err := cluster.Left(ctx, d.namespace)
		if err != nil {
			return false, err
		}
		left = slices.DeleteFunc(left, func(key string) bool {
			return !strings.Contains(key, " "+claimName+"-") || strings.HasPrefix(key, "PersistentVolumeClaim ")
		})
		if len(left) > 0 {
			return false, fmt.Errorf("left are %v", left)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if diff := cmp.Diff(volumes, d.volumes()); diff != "" {
		return fmt.Errorf("the volumes are not those of before:\n%s", diff)
	}
	return nil
}

// stopLedger stops the ledger, if there is one.
func (d *database) stopLedger(ctx context.Context) error {
	if d.ledger == nil {
		return nil
	}
	err := d.ledger.Stop(ctx, d.world)
	d.ledger = nil
	return err
}
