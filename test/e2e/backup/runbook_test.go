//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/yaml"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// need is a case of disaster recovery: data of the DatabaseCluster orders in the namespace shop is
// lost, and the steps of docs/backup.md are taken as they are written there. Only the address of
// the store, the time to restore to and the name of the namespace are the test's.
type need struct {
	*ground

	// dir is the folder in which the commands run, with the key of the encryption.
	dir string

	commands runbook

	// right is a time with two rows and without the third one, later a time with all three.
	right, later time.Time

	// to is the time that is restored to.
	to time.Time
}

// The number of rows before something went wrong, and at the end.
const (
	rightRows = 2
	allRows   = 3
)

// Names in the runbook.
const (
	shop           = "e2e-backup-shop"
	orders         = "orders"
	ordersBackup   = orders + "-backup"
	ordersRestored = orders + "-restored"
)

// runbook holds the commands of the document by step.
type runbook struct {
	stop, see, others, pointInTime, again, empty, restore, anew, look, scale, afterwards string

	// backup, location and destination are manifests of the document: of a Backup, of the source of
	// a Restore, and of the source of a DatabaseCluster.
	backup, location, destination string
}

func inNeed() types.Feature {
	// The namespace is not named after the suite, so that the commands need not be changed more
	// than necessary.
	h := &need{ground: newGround(shop)}
	return tests.Feature("the runbook", shop).
		Full("the runbook step by step: back to a time, to another one, and from a logical backup", h.goesBack).
		Full("the runbook step by step: in a new cluster, from the store alone", h.beginsAnew).
		Feature()
}

// block returns the nth block of a language in a section of a document, counted from 0.
func block(document, section, language string, n int) (string, error) {
	_, text, found := strings.Cut(document, "\n"+section+"\n")
	if end := strings.Index(text, "\n#"); end >= 0 && !strings.HasPrefix(section, "## ") {
		text = text[:end]
	}
	for range n + 1 {
		var ok bool
		if _, text, ok = strings.Cut(text, "```"+language+"\n"); !ok {
			found = false
		}
	}
	content, _, ok := strings.Cut(text, "```\n")
	if !found || !ok {
		return "", fmt.Errorf("docs/backup.md has no block %d of %s below %q", n, language, section)
	}
	return content, nil
}

// read reads the commands from the document.
func (r *runbook) read() error {
	raw, err := os.ReadFile("../../../docs/backup.md")
	if err != nil {
		return fmt.Errorf("cannot read the runbook: %w", err)
	}
	var errs []error
	for _, b := range []struct {
		into              *string
		section, language string
		n                 int
	}{
		{&r.stop, "### 1. Stop the loss", "sh", 0},
		{&r.see, "### 2. List the backups", "sh", 0},
		{&r.others, "### 2. List the backups", "sh", 1},
		{&r.pointInTime, "### 3a. To a point in time, beside the old cluster", "sh", 0},
		{&r.again, "### 3a. To a point in time, beside the old cluster", "sh", 1},
		{&r.empty, "### 3b. A logical backup into an empty database", "sh", 0},
		{&r.restore, "### 3b. A logical backup into an empty database", "sh", 1},
		{&r.anew, "### 3c. In a new cluster, from the store alone", "sh", 0},
		{&r.destination, "### 3c. In a new cluster, from the store alone", "yaml", 0},
		{&r.look, "### 4. Check the restored data", "sh", 0},
		{&r.scale, "### 5. Switch", "sh", 0},
		{&r.afterwards, "### 6. Check archiving and backups", "sh", 0},
		{&r.backup, "# Backup and Restore", "yaml", 0},
		{&r.location, "## Restoring", "yaml", 1},
	} {
		text, err := block("\n"+string(raw), b.section, b.language, b.n)
		// The namespace shop may be in use on this cluster.
		*b.into = regexp.MustCompile(`\bshop\b`).ReplaceAllString(text, shop)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// do runs commands of the document, with the time that is restored to filled in.
func (h *need) do(ctx context.Context, commands string) (string, error) {
	if !h.to.IsZero() {
		commands = strings.ReplaceAll(commands, "2026-11-21T14:29:00Z", h.to.UTC().Format(time.RFC3339))
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", commands, err, out)
	}
	return string(out), nil
}

// endpoint returns the endpoint of the store, which outlives the namespace.
func endpoint() string { return field.destination(backupv1.S3, engines[0]).Endpoint }

// opened creates the namespace with the credentials of the store.
func (h *need) opened(ctx context.Context) error {
	if _, err := h.do(ctx, h.commands.anew); err != nil {
		return err
	}
	// The label makes the suite remove the namespace at its end.
	if _, err := harness.Kubectl(ctx, "label", "namespace", shop, harness.Label+"=e2e-backup"); err != nil {
		return err
	}
	// The store's certificate is signed by no public authority.
	ca := harness.Field(field.world.Get("Secret", "s3"), "data", "ca.crt")
	if _, err := cluster.Patch(ctx, "Secret", shop, "backup-store", harness.Patch{"data": harness.Patch{"ca.crt": ca}}); err != nil {
		return err
	}
	if h.world != nil {
		return nil
	}
	var err error
	h.world, err = cluster.Watch(ctx, shop)
	return err
}

// begun creates the database with physical and logical backups, and lets something go wrong, once.
func (h *need) begun(ctx context.Context) error {
	return h.once.Do("orders", func() error {
		if err := h.commands.read(); err != nil {
			return err
		}
		if err := h.stored(ctx); err != nil {
			return err
		}
		if err := h.opened(ctx); err != nil {
			return err
		}
		if _, err := harness.Kubectl(ctx, "create", "deployment", orders+"-app", "-n", shop, "--image", cluster.Registry+"/e2e-stores:latest"); err != nil {
			return err
		}
		if err := h.create(ctx, "backup/orders.yaml", map[string]string{"ENDPOINT": endpoint()}); err != nil {
			return err
		}
		if err := h.world.AwaitReady(ctx, done, "DatabaseCluster", orders); err != nil {
			return err
		}
		if err := h.filed(ctx); err != nil {
			return err
		}
		return h.goWrong(ctx)
	})
}

// stored creates the bucket in the store, and the key of the encryption in the folder of the
// commands.
func (h *need) stored(ctx context.Context) error {
	if err := field.ready(ctx); err != nil {
		return err
	}
	if err := field.store(ctx, backupv1.S3); err != nil {
		return err
	}
	if _, err := field.on(ctx, string(backupv1.S3), "mkdir", "/data/company-backups"); err != nil {
		return err
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	if h.dir, err = os.MkdirTemp("", "runbook"); err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	return os.WriteFile(filepath.Join(h.dir, "orders.key"), []byte(identity.String()+"\n"), 0o600)
}

// filed creates the logical Backup.
func (h *need) filed(ctx context.Context) error {
	b := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(h.commands.backup), b); err != nil {
		return fmt.Errorf("cannot read the Backup: %w", err)
	}
	forProvider := b.Object["spec"].(map[string]any)["forProvider"].(map[string]any)
	forProvider["destination"].(map[string]any)["endpoint"] = endpoint()
	forProvider["encryption"] = map[string]any{"secretRef": map[string]any{"name": "orders-encryption", "key": "key"}}
	_, err := cluster.Create(ctx, b)
	return err
}

// goWrong writes two rows, backs them up, and writes a third one that is wrong.
func (h *need) goWrong(ctx context.Context) error {
	err := h.awaitBackup(ctx, givenUp, ordersBackup, "to have a backup", func(b backupv1.Backup) bool { return b.Status.AtProvider.Count > 0 })
	if err != nil {
		return err
	}
	if _, err := h.psql(ctx, "SET ROLE app", "CREATE TABLE orders (n int)", "INSERT INTO orders VALUES (1), (2)"); err != nil {
		return err
	}
	if _, err := h.succeed(ctx, orders); err != nil {
		return err
	}
	now := func(what string) string {
		return "SELECT '" + what + "', extract(epoch FROM date_trunc('second', clock_timestamp()))::bigint"
	}
	const wait = "SELECT pg_sleep(1.2)"
	out, err := h.psql(ctx, wait, now("right"), wait, "INSERT INTO orders VALUES (3)", wait, now("later"))
	if err != nil {
		return err
	}
	for what, moment := range map[string]*time.Time{"right": &h.right, "later": &h.later} {
		_, after, _ := strings.Cut(out, what+"|")
		at, _, _ := strings.Cut(after, "\n")
		seconds, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return fmt.Errorf("cannot tell the time that is called %s: %q", what, out)
		}
		*moment = time.Unix(seconds, 0)
	}
	h.to = h.right
	wrong := time.Now()
	return h.awaitBackup(ctx, givenUp, ordersBackup, "to be recoverable up to what went wrong", func(b backupv1.Backup) bool {
		last := b.Status.AtProvider.LastRecoverableTime
		return last != nil && last.After(wrong)
	})
}

// psql runs statements one by one on the server of orders.
func (h *need) psql(ctx context.Context, statements ...string) (string, error) {
	args := []string{"exec", "-n", shop, orders + "-postgresql-0", "-c", "postgresql", "--", "psql", "-h", "/var/run/postgresql", "-U", "postgres", "-At", "app"}
	for _, s := range statements {
		args = append(args, "-c", s)
	}
	return harness.Kubectl(ctx, args...)
}

// shows runs step 4 and checks the number of restored rows.
func (h *need) shows(ctx context.Context, rows int) error {
	out, err := h.do(ctx, h.commands.look)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("\n     %d\n", rows); !strings.Contains(out, want) || !strings.HasPrefix(out, "app") {
		return fmt.Errorf("step 4 shows %q: want the database app and %d orders", out, rows)
	}
	return nil
}

func (h *need) goesBack(ctx context.Context, n notes) error {
	if err := h.begun(ctx); err != nil {
		return err
	}
	if _, err := h.do(ctx, h.commands.stop); err != nil {
		return err
	}
	out, err := h.do(ctx, h.commands.see)
	if err != nil {
		return err
	}
	b := h.backup(orders).Status.AtProvider
	if len(b.Backups) != 1 || !strings.Contains(out, b.Backups[0].ID+"\t") || !strings.Contains(out, "Z to 20") {
		return fmt.Errorf("step 2 shows neither backup %v nor two times: %s", ids(b), out)
	}
	if out, err = h.do(ctx, h.commands.others); err != nil || strings.TrimSpace(out) != "" {
		return errors.Join(err, fmt.Errorf("step 2 shows other databases, and there were none: %q", out))
	}
	begin := time.Now()
	if _, err := h.do(ctx, h.commands.pointInTime); err != nil {
		return err
	}
	n.Addf("back at %s after %.0f s", h.right.UTC().Format(time.TimeOnly), time.Since(begin).Seconds())
	if err := h.shows(ctx, rightRows); err != nil {
		return err
	}
	if err := h.refusesLeftovers(ctx); err != nil {
		return err
	}
	// Restore to another time.
	if _, err := h.do(ctx, h.commands.again); err != nil {
		return err
	}
	h.to = h.later
	_, err = h.do(ctx, h.commands.pointInTime)
	h.to = h.right
	if err != nil {
		return err
	}
	if err := h.shows(ctx, allRows); err != nil {
		return err
	}
	if err := h.switches(ctx); err != nil {
		return err
	}
	if err := h.archives(ctx); err != nil {
		return err
	}
	if _, err := h.do(ctx, h.commands.again); err != nil {
		return err
	}
	if _, err := h.do(ctx, h.commands.empty); err != nil {
		return err
	}
	if _, err := h.do(ctx, h.commands.restore); err != nil {
		return err
	}
	if err := h.shows(ctx, rightRows); err != nil {
		return err
	}
	return h.archives(ctx)
}

// switches scales the application up again.
func (h *need) switches(ctx context.Context) error {
	if _, err := h.do(ctx, h.commands.scale); err != nil {
		return err
	}
	return h.world.Await(ctx, soon, "the application to be scaled up", func() (bool, string) {
		n := harness.Number(h.world.Get("Deployment", orders+"-app"), "spec", "replicas")
		return n == 1, fmt.Sprintf("it has %d replicas", n)
	})
}

// archives runs step 6 and checks that the new cluster archives and has a verified backup of its
// own.
func (h *need) archives(ctx context.Context) error {
	out, err := h.do(ctx, h.commands.afterwards)
	if err != nil {
		return err
	}
	if !strings.Contains(out, ordersRestored+"-backup") {
		return fmt.Errorf("step 6 shows no backups of the new cluster: %s", out)
	}
	err = h.awaitBackup(ctx, givenUp, ordersRestored+"-backup", "to be verified", func(b backupv1.Backup) bool {
		return b.Status.AtProvider.Count > 0 && is(b, "Verified", "True", "")
	})
	if err != nil {
		return err
	}
	return h.world.Await(ctx, done, "ArchivingHealthy and BackupHealthy of "+ordersRestored, func() (bool, string) {
		c := h.world.Claim("DatabaseCluster", ordersRestored)
		return c.Is("ArchivingHealthy") && c.Is("BackupHealthy"), c.String()
	})
}

// refusesLeftovers checks that a new cluster which is deleted and applied again for another time is
// refused because of its old volumes: their data would look as if it were of the second time.
func (h *need) refusesLeftovers(ctx context.Context) error {
	if _, err := harness.Kubectl(ctx, "exec", "-n", shop, ordersRestored+"-postgresql-0", "-c", "postgresql", "--",
		"psql", "-h", "/var/run/postgresql", "-U", "postgres", "app", "-c", "INSERT INTO orders VALUES (4)"); err != nil {
		return err
	}
	remove, _, found := strings.Cut(h.commands.again, "kubectl delete pvc")
	if !found {
		return errors.New("the runbook does not remove the volumes")
	}
	if _, err := h.do(ctx, remove); err != nil {
		return err
	}
	file, _, _ := strings.Cut(h.commands.pointInTime, "kubectl wait")
	if _, err := h.do(ctx, file); err != nil {
		return err
	}
	const words = "nothing is restored over the data on volume claim data-" + ordersRestored + "-postgresql-0"
	return h.world.Await(ctx, started, "the claim to be refused", func() (bool, string) {
		c := h.world.Claim("DatabaseCluster", ordersRestored)
		phase, message := harness.Field(h.world.Get("DatabaseCluster", ordersRestored), "status", "phase"), harness.Field(h.world.Get("DatabaseCluster", ordersRestored), "status", "message")
		return phase == "Failed" && strings.Contains(message, words), phase + ": " + message + ", " + c.String()
	})
}

func (h *need) beginsAnew(ctx context.Context, n notes) error {
	if err := h.begun(ctx); err != nil {
		return err
	}
	// The namespace is lost.
	if err := cluster.Sweep(ctx, shop); err != nil {
		return err
	}
	if err := h.opened(ctx); err != nil {
		return err
	}
	begin := time.Now()
	if _, err := h.do(ctx, h.commands.empty); err != nil {
		return err
	}
	if err := h.apply(ctx, h.commands.restore, h.commands.location, "spec", "forProvider", "source"); err != nil {
		return err
	}
	if err := h.shows(ctx, rightRows); err != nil {
		return err
	}
	n.Addf("a logical backup after %.0f s", time.Since(begin).Seconds())
	if err := h.archives(ctx); err != nil {
		return err
	}
	if _, err := h.do(ctx, h.commands.again); err != nil {
		return err
	}
	begin = time.Now()
	if err := h.apply(ctx, h.commands.pointInTime, h.commands.destination, "spec", "restoreFrom"); err != nil {
		return err
	}
	n.Addf("a physical one after %.0f s", time.Since(begin).Seconds())
	if err := h.shows(ctx, allRows); err != nil {
		return err
	}
	return h.archives(ctx)
}

// apply runs commands after it has replaced a part of their manifest by that of another one.
func (h *need) apply(ctx context.Context, commands, with string, path ...string) error {
	before, rest, _ := strings.Cut(commands, "<<'END'\n")
	manifest, after, found := strings.Cut(rest, "END\n")
	if !found {
		return fmt.Errorf("there is no manifest in %s", commands)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), u); err != nil {
		return fmt.Errorf("cannot read the manifest of %s: %w", commands, err)
	}
	part := map[string]any{}
	if err := yaml.Unmarshal([]byte(with), &part); err != nil {
		return fmt.Errorf("cannot read %s: %w", with, err)
	}
	value := part[path[len(path)-1]].(map[string]any)
	where := value
	if l, ok := value["location"].(map[string]any); ok {
		where = l
	}
	where["destination"].(map[string]any)["endpoint"] = endpoint()
	if err := unstructured.SetNestedMap(u.Object, value, path...); err != nil {
		return fmt.Errorf("cannot change the manifest: %w", err)
	}
	raw, err := yaml.Marshal(u)
	if err != nil {
		return fmt.Errorf("cannot write the manifest: %w", err)
	}
	_, err = h.do(ctx, before+"<<'END'\n"+string(raw)+"END\n"+after)
	return err
}
