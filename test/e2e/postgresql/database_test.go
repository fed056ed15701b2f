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

// Names of what the claim becomes.
const (
	claimName   = "orders"
	setName     = claimName + "-postgresql"
	primaryName = claimName + "-primary"
	connection  = claimName + "-connection"

	patroniLabel = "storeplane.example.com/patroni"
	roleLabel    = "storeplane.example.com/role"
)

// container in which PostgreSQL runs.
const container = "postgresql"

// Bounds of waiting.
const (
	// soon is for what takes a reconcile or two, or an election.
	soon = time.Minute
	// settled is for running servers to take up a change, one after the other.
	settled = 5 * time.Minute
)

// baseSize is the number of servers that each check of production finds and
// leaves.
const baseSize = 3

// database is a claim under test.
type database struct {
	namespace, manifest string

	world  *harness.World
	client *harness.Client
	ledger *harness.Ledger

	// broken databases are not worth waiting for again.
	broken bool
}

// claim it in a namespace of its own, and watch all that comes of it.
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

// file the claim in its namespace.
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

// ready waits until the database is as each check finds it and leaves it.
// Whichever check comes first claims it, so that each can be run alone; one that
// finds it broken by an earlier check claims a new one.
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

// status of the claim.
func (d *database) status() harness.Claim { return d.world.Claim("DatabaseCluster", claimName) }

// change the claim, or ask whether it may be changed.
func (d *database) change(ctx context.Context, spec harness.Patch, dryRun ...string) error {
	u, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, claimName, harness.Patch{"spec": spec}, dryRun...)
	if err != nil || len(dryRun) > 0 {
		return err
	}
	return d.world.AwaitSeen(ctx, u)
}

// spec field of the claim.
func (d *database) spec(field string) string {
	return harness.Field(d.world.Get("DatabaseCluster", claimName), "spec", field)
}

// server is the name of the pod of a number.
func server(n int) string { return setName + "-" + strconv.Itoa(n) }

// pods of the servers, by name.
func (d *database) pods() []*unstructured.Unstructured {
	return slices.DeleteFunc(d.world.List("Pod"), func(p *unstructured.Unstructured) bool {
		return p.GetLabels()[patroniLabel] != setName
	})
}

// uids of the servers' pods, by name.
func (d *database) uids() map[string]string {
	out := map[string]string{}
	for _, p := range d.pods() {
		out[p.GetName()] = string(p.GetUID())
	}
	return out
}

// primary is the pod that has the role; nil when none has, or more than one.
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

// replica is the last of the pods that are none.
func (d *database) replica() *unstructured.Unstructured {
	var out *unstructured.Unstructured
	for _, p := range d.pods() {
		if p.GetLabels()[roleLabel] == "replica" {
			out = p
		}
	}
	return out
}

// whole waits until there are as many servers as asked for, all of them well and
// as they should be, and the claim says so.
func (d *database) whole(ctx context.Context, size int) error {
	return d.world.Await(ctx, settled, fmt.Sprintf("%d servers to be well", size), func() (bool, string) {
		if missing := d.missing(size); missing != "" {
			return false, missing + "; " + d.status().String()
		}
		// What the claim says is some seconds old.
		following, err := d.ask(ctx, "postgres", "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state <> 'async'")
		if err != nil {
			return false, err.Error()
		}
		return following == strconv.Itoa(size-1), following + " standbys count for writes"
	})
}

// healthy are the conditions that may not be False.
var healthy = []string{"ReplicationHealthy", "StorageHealthy", "ParametersApplied", "DatabasesReady"}

// missing says what keeps the database from being whole.
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

// sql asks a server itself, as its superuser.
func (d *database) sql(ctx context.Context, pod, database, query string) (string, error) {
	out, err := cluster.Exec(ctx, d.namespace, pod, container, nil,
		"psql", "--no-psqlrc", "--tuples-only", "--no-align", "--username=postgres", "--dbname="+database, "--command="+query)
	return strings.TrimSpace(out), err
}

// ask the primary itself.
func (d *database) ask(ctx context.Context, database, query string) (string, error) {
	p := d.primary()
	if p == nil {
		return "", errors.New("there is no one primary to ask")
	}
	return d.sql(ctx, p.GetName(), database, query)
}

// secret is a key of a Secret.
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

// login with what a Secret says.
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

// words of the claim that a person reads.
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

// says waits for words of the claim.
func (d *database) says(ctx context.Context, within time.Duration, want string) error {
	return d.world.Await(ctx, within, fmt.Sprintf("the claim to say %q", want), func() (bool, string) {
		text := d.words()
		return strings.Contains(text, want), text
	})
}
