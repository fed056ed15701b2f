//go:build e2e

package postgresql

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// Names of the claim and of its objects.
const (
	claimName   = "orders"
	setName     = claimName + "-postgresql"
	primaryName = claimName + "-primary"
	connection  = claimName + "-connection"

	patroniLabel = "storeplane.example.com/patroni"
	roleLabel    = "storeplane.example.com/role"
)

// container is the name of the container in which PostgreSQL runs.
const container = "postgresql"

// Timeouts.
const (
	// soon is for what takes one or two reconciles, or an election.
	soon = time.Minute
	// settled is for a change of running servers, one after the other.
	settled = 5 * time.Minute
)

// baseSize is the number of servers with which each check of production begins and ends.
const baseSize = 3

// database is a DatabaseCluster under test.
type database struct {
	namespace, manifest string

	world  *harness.World
	client *harness.Client
	ledger *harness.Ledger

	// broken is true if the database did not become healthy again: then a new one is claimed.
	broken bool
}

// claim creates the namespace, starts a watch of it, and applies the claim.
func (d *database) claim(ctx context.Context, values map[string]string) error {
	if err := cluster.CreateNamespace(ctx, d.namespace); err != nil {
		return err
	}
	var err error
	if d.world, err = cluster.Watch(ctx, d.namespace); err != nil {
		return err
	}
	return d.file(ctx, values)
}

// file applies the claim in its namespace.
func (d *database) file(ctx context.Context, values map[string]string) error {
	all := map[string]string{"NAMESPACE": d.namespace}
	maps.Copy(all, values)
	u, err := manifests.Read(d.manifest, all)
	if err != nil {
		return err
	}
	_, err = cluster.Create(ctx, u)
	return err
}

// ready restores the state in which each check begins and ends, and waits for it. The first check
// that calls it applies the claim, so that each check can run alone. If an earlier check has left
// the database broken, a new one is claimed.
func (d *database) ready(ctx context.Context) error {
	if d.broken {
		d.world.Stop()
		*d = database{namespace: d.namespace, manifest: d.manifest}
		if err := cluster.Sweep(ctx, d.namespace); err != nil {
			return err
		}
	}
	if d.world == nil {
		if err := d.claim(ctx, nil); err != nil {
			return err
		}
	}
	err := d.change(ctx, harness.Patch{
		"size": baseSize, "version": "17", "hibernated": nil, "parameters": nil, "users": nil, "databases": nil, "tls": nil, "synchronousMode": nil,
	})
	if err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		d.broken = ctx.Err() == nil
		return err
	}
	return d.hasClient(ctx)
}

func (d *database) hasClient(ctx context.Context) error {
	if d.client != nil {
		return nil
	}
	var err error
	d.client, err = harness.StartClient(ctx, cluster, d.world)
	return err
}

// status returns the claim.
func (d *database) status() harness.Claim { return d.world.Claim("DatabaseCluster", claimName) }

// change patches the spec of the claim and, unless it is a dry run, waits until the watch contains
// the change.
func (d *database) change(ctx context.Context, spec harness.Patch, dryRun ...string) error {
	u, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, claimName, harness.Patch{"spec": spec}, dryRun...)
	if err != nil || len(dryRun) > 0 {
		return err
	}
	return d.world.AwaitSeen(ctx, u)
}

// spec returns a field of the claim's spec.
func (d *database) spec(field string) string {
	return harness.Field(d.world.Get("DatabaseCluster", claimName), "spec", field)
}

// server returns the name of the pod of a server by its number.
func server(n int) string { return setName + "-" + strconv.Itoa(n) }

// pods returns the pods of the servers, by name.
func (d *database) pods() []*unstructured.Unstructured {
	return slices.DeleteFunc(d.world.List("Pod"), func(p *unstructured.Unstructured) bool {
		return p.GetLabels()[patroniLabel] != setName
	})
}

// uids returns the UIDs of the servers' pods, by name.
func (d *database) uids() map[string]string {
	out := map[string]string{}
	for _, p := range d.pods() {
		out[p.GetName()] = string(p.GetUID())
	}
	return out
}

// primary returns the pod with the role primary, or nil if there is none or more than one.
func (d *database) primary() *unstructured.Unstructured {
	var out *unstructured.Unstructured
	for _, p := range d.pods() {
		if p.GetLabels()[roleLabel] != "primary" || p.GetDeletionTimestamp() != nil {
			continue
		}
		if out != nil {
			return nil
		}
		out = p
	}
	return out
}

// replica returns the last of the pods with the role replica.
func (d *database) replica() *unstructured.Unstructured {
	var out *unstructured.Unstructured
	for _, p := range d.pods() {
		if p.GetLabels()[roleLabel] == "replica" {
			out = p
		}
	}
	return out
}

// whole waits until there are so many servers, all of them healthy and up to date, and the claim
// reports that.
func (d *database) whole(ctx context.Context, size int) error {
	return d.world.Await(ctx, settled, fmt.Sprintf("%d servers to be well", size), func() (bool, string) {
		if missing := d.missing(size); missing != "" {
			return false, missing + "; " + d.status().String()
		}
		// The status of the claim is some seconds old.
		following, err := d.ask(ctx, "postgres", "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state <> 'async'")
		if err != nil {
			return false, err.Error()
		}
		return following == strconv.Itoa(size-1), following + " standbys count for writes"
	})
}

// healthy are the conditions that may not be False.
var healthy = []string{"ReplicationHealthy", "StorageHealthy", "ParametersApplied", "DatabasesReady"}

// missing returns what is not yet as whole requires, or "".
func (d *database) missing(size int) string {
	set := d.world.Get("StatefulSet", setName)
	if set == nil || harness.Number(set, "status", "observedGeneration") != set.GetGeneration() {
		return "StatefulSet " + setName + " is not up to date"
	}
	pods := d.pods()
	if len(pods) != size {
		return fmt.Sprintf("there are %d pods", len(pods))
	}
	for _, p := range pods {
		if p.GetDeletionTimestamp() != nil || !harness.ClaimOf(p).Is("Ready") {
			return "pod " + p.GetName() + " is not ready"
		}
		if p.GetLabels()["controller-revision-hash"] != harness.Field(set, "status", "updateRevision") {
			return "pod " + p.GetName() + " is not of the newest revision"
		}
	}
	primary := d.primary()
	if primary == nil {
		return "not exactly one pod is primary"
	}
	u, c := d.world.Get("DatabaseCluster", claimName), d.status()
	switch {
	case !c.Ready():
		return "the claim is not Ready"
	case harness.Field(u, "status", "primary") != primary.GetName():
		return fmt.Sprintf("primary is %s, and the claim says %q", primary.GetName(), harness.Field(u, "status", "primary"))
	case harness.Number(u, "status", "readyReplicas") != int64(size):
		return fmt.Sprintf("the claim tells of %d servers", harness.Number(u, "status", "readyReplicas"))
	}
	for _, h := range healthy {
		if c.Condition(h).Status == "False" {
			return "condition " + h + " is False"
		}
	}
	return ""
}

// succeeded waits for a primary in another pod than the given one.
func (d *database) succeeded(ctx context.Context, old *unstructured.Unstructured) error {
	return d.world.Await(ctx, soon, "another primary than "+old.GetName(), func() (bool, string) {
		for _, p := range d.pods() {
			if p.GetUID() != old.GetUID() && p.GetLabels()[roleLabel] == "primary" {
				return true, ""
			}
		}
		return false, "there is none"
	})
}

// sql runs a query on a server as its superuser.
func (d *database) sql(ctx context.Context, pod, database, query string) (string, error) {
	out, err := cluster.Exec(ctx, d.namespace, pod, container, nil,
		"psql", "--no-psqlrc", "--tuples-only", "--no-align", "--username=postgres", "--dbname="+database, "--command="+query)
	return strings.TrimSpace(out), err
}

// ask runs a query on the primary.
func (d *database) ask(ctx context.Context, database, query string) (string, error) {
	p := d.primary()
	if p == nil {
		return "", errors.New("there is not exactly one primary to query")
	}
	return d.sql(ctx, p.GetName(), database, query)
}

// secret returns the value of a key of a Secret.
func (d *database) secret(name, key string) (string, error) {
	u := d.world.Get("Secret", name)
	if u == nil {
		return "", fmt.Errorf("there is no Secret %s", name)
	}
	raw, err := base64.StdEncoding.DecodeString(harness.Field(u, "data", key))
	if err != nil || len(raw) == 0 {
		return "", fmt.Errorf("Secret %s has no %s: %w", name, key, err)
	}
	return string(raw), nil
}

// login returns the login with the data of a Secret.
func (d *database) login(secret, database string) (harness.Login, error) {
	l := harness.Login{Settings: map[string]string{"dbname": database, "sslmode": "require"}}
	for setting, key := range map[string]string{"host": "host", "port": "port", "user": "username", "password": "password"} {
		v, err := d.secret(secret, key)
		if err != nil {
			return l, err
		}
		l.Settings[setting] = v
	}
	return l, nil
}

// words returns the messages in the status of the claim.
func (d *database) words() string {
	c := d.status()
	texts := []string{c.Status.Message}
	for _, comp := range c.Status.Components {
		texts = append(texts, comp.Name+": "+comp.Message)
	}
	for _, cond := range c.Status.Conditions {
		texts = append(texts, fmt.Sprintf("%s %s: %s", cond.Type, cond.Status, cond.Message))
	}
	return strings.Join(texts, "\n")
}

// says waits until the status of the claim contains these words.
func (d *database) says(ctx context.Context, within time.Duration, want string) error {
	return d.world.Await(ctx, within, fmt.Sprintf("the claim to say %q", want), func() (bool, string) {
		text := d.words()
		return strings.Contains(text, want), text
	})
}
