//go:build e2e

package mysql

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/internal/gtid"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// archivedName is the claim whose binary logs are archived.
const archivedName = "archived"

// anyTime: what is written after a backup is archived, whichever server is the primary, and a new cluster has
// what there was at a time.
func (d *database) anyTime(ctx context.Context, n notes) error {
	if err := d.apply(ctx, map[string]string{}, "mysql/archived.yaml"); err != nil {
		return err
	}
	if err := d.world.AwaitReady(ctx, settled, "DatabaseCluster", archivedName); err != nil {
		return err
	}
	err := d.world.Await(ctx, settled, "its first backup, and the archive", func() (bool, string) {
		c := d.world.Claim("DatabaseCluster", archivedName)
		return c.Is("ArchivingHealthy") && c.Is("BackupHealthy") && d.world.Claim("Backup", archivedName+"-backup").Is("Ready"), c.String()
	})
	if err != nil {
		return err
	}
	for _, statement := range []string{"CREATE TABLE seen (n INT PRIMARY KEY)", "INSERT INTO seen VALUES (1)"} {
		if _, err := d.sql(ctx, archivedName, statement); err != nil {
			return err
		}
	}
	at, err := d.between(ctx)
	if err != nil {
		return err
	}
	second, err := d.transaction(ctx, "INSERT INTO seen VALUES (2)")
	if err != nil {
		return err
	}
	if err := d.archivesOverRestart(ctx, n); err != nil {
		return err
	}
	return d.rewinds(ctx, n, at, second)
}

// transaction executes a statement, and returns the GTID of its transaction.
func (d *database) transaction(ctx context.Context, statement string) (string, error) {
	var sets [2]gtid.Set
	for i := range sets {
		out, err := d.sql(ctx, archivedName, "SELECT @@GLOBAL.gtid_executed")
		if err != nil {
			return "", err
		}
		if sets[i], err = gtid.Parse(strings.TrimSpace(out)); err != nil {
			return "", err
		}
		if i > 0 {
			break
		}
		if _, err := d.sql(ctx, archivedName, statement); err != nil {
			return "", err
		}
	}
	one := sets[1].Minus(sets[0])
	if one.Len() != 1 {
		return "", fmt.Errorf("want one transaction more, got %s", one)
	}
	return one.String(), nil
}

// between returns a time, to the second, between what was written before and what is written next.
func (d *database) between(ctx context.Context) (time.Time, error) {
	at := time.Now().Truncate(time.Second).Add(2 * time.Second)
	select {
	case <-ctx.Done():
		return at, ctx.Err()
	case <-time.After(time.Until(at.Add(time.Second))):
		return at, nil
	}
}

// archivesOverRestart loses the server, writes a row, and waits until that is archived.
func (d *database) archivesOverRestart(ctx context.Context, n notes) error {
	pod := d.world.Get("Pod", archivedName+"-mysql-0")
	if err := d.deletePod(ctx, pod); err != nil {
		return err
	}
	if err := d.replaced(ctx, "Pod", pod); err != nil {
		return err
	}
	err := eventually(ctx, "a row to be written", func() (bool, string) {
		_, err := d.sql(ctx, archivedName, "REPLACE INTO seen VALUES (3)")
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	start := time.Now()
	before, err := d.segments(ctx, "archive")
	if err != nil {
		return err
	}
	err = eventually(ctx, "the row to be archived", func() (bool, string) {
		now, err := d.segments(ctx, "archive")
		return err == nil && now > before, fmt.Sprintf("%d segments, %d before: %v", now, before, err)
	})
	n.Addf("archived after %.0fs", time.Since(start).Seconds())
	return err
}

// eventually waits for what no object of the cluster shows.
func eventually(ctx context.Context, what string, done func() (ok bool, instead string)) error {
	instead := ""
	err := wait.For(func(context.Context) (ok bool, err error) {
		ok, instead = done()
		return ok, nil
	}, wait.WithContext(ctx), wait.WithTimeout(settled), wait.WithInterval(time.Second))
	if err != nil {
		return fmt.Errorf("waited %s for %s: %s: %w", settled, what, instead, err)
	}
	return nil
}

// segments returns how many segments of binary logs, and backups, are in the store below a prefix.
func (d *database) segments(ctx context.Context, prefix string) (int, error) {
	out, err := d.inStore(ctx, nil, "data", "ls", "/data/backups/"+prefix)
	return strings.Count(out, "/manifest.json"), err
}

// rewinds fills new clusters with what there was at a time, before a transaction, and with all.
func (d *database) rewinds(ctx context.Context, n notes, at time.Time, second string) error {
	for name, want := range map[string]string{"rewound": "1", "undone": "1", "latest": "1,2,3"} {
		values := map[string]string{"NAME": name, "BACKUP": archivedName + "-backup"}
		switch name {
		case "rewound":
			values["TIME"] = at.UTC().Format(time.RFC3339)
		case "undone":
			values["BEFORE"] = second
		}
		start := time.Now()
		got, err := d.restored(ctx, values, "SELECT GROUP_CONCAT(n ORDER BY n) FROM seen")
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s has rows %s, want %s", name, got, want)
		}
		n.Addf("%s after %.0fs", name, time.Since(start).Seconds())
	}
	return cluster.Delete(ctx, "DatabaseCluster", d.namespace, archivedName)
}

// restored fills a new cluster as values have it, returns what a statement selects there, and deletes it.
func (d *database) restored(ctx context.Context, values map[string]string, statement string) (string, error) {
	name := values["NAME"]
	if err := d.apply(ctx, values, "mysql/rewound.yaml"); err != nil {
		return "", err
	}
	if err := d.world.AwaitReady(ctx, settled, "DatabaseCluster", name); err != nil {
		return "", err
	}
	got, err := d.sql(ctx, name, statement)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(got), cluster.Delete(ctx, "DatabaseCluster", d.namespace, name)
}

// sql executes a statement as the application of a claim.
func (d *database) sql(ctx context.Context, claim, statement string) (string, error) {
	return d.sqlBy(ctx, claim+"-connection", statement)
}

// sqlBy executes a statement by the connection in a Secret.
func (d *database) sqlBy(ctx context.Context, secret, statement string) (string, error) {
	uri, err := base64.StdEncoding.DecodeString(harness.Field(d.world.Get("Secret", secret), "data", "uri"))
	if err != nil {
		return "", fmt.Errorf("cannot read the connection in Secret %s: %w", secret, err)
	}
	return d.inStore(ctx, uri, "data", "exec", "mysql", statement)
}

// sqlAt executes a statement as the application at one server.
func (d *database) sqlAt(ctx context.Context, pod *unstructured.Unstructured, statement string) (string, error) {
	secret := d.world.Get("Secret", connection)
	uri, err := base64.StdEncoding.DecodeString(harness.Field(secret, "data", "uri"))
	if err != nil {
		return "", fmt.Errorf("cannot read the connection: %w", err)
	}
	host, err := base64.StdEncoding.DecodeString(harness.Field(secret, "data", "host"))
	if err != nil {
		return "", fmt.Errorf("cannot read the connection's host: %w", err)
	}
	uri = bytes.Replace(uri, host, []byte(harness.Field(pod, "status", "podIP")), 1)
	return d.inStore(ctx, uri, "data", "exec", "mysql", statement)
}

// inStore runs a command in the pod of the store.
func (d *database) inStore(ctx context.Context, input []byte, command ...string) (string, error) {
	pods := d.labelled("app", storeName)
	if len(pods) == 0 {
		return "", fmt.Errorf("there is no pod of %s to run a command in", storeName)
	}
	return cluster.Exec(ctx, d.namespace, pods[0], storeName, bytes.NewReader(input), command...)
}
