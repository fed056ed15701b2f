//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// replayed is how many segments of WAL a restore has to replay, so that there is time to kill it
// meanwhile.
const replayed = 24

// beginsAgain checks that a restore ends with every row up to the given time, even if its server is
// killed while the data folder is filled and deleted while WAL is replayed.
func (d *timed) beginsAgain(ctx context.Context, n notes) error {
	if err := d.written(ctx, n); err != nil {
		return err
	}
	primary := d.primary()
	if _, err := cluster.VolumePath(ctx, d.namespace, "data-"+primary); err != nil {
		return unlessNode(err)
	}
	if _, err := d.psql(ctx, primary, "CREATE TABLE IF NOT EXISTS replayed (n int)"); err != nil {
		return err
	}
	for range replayed {
		if _, err := d.psql(ctx, primary, "INSERT INTO replayed VALUES (1); SELECT pg_switch_wal()"); err != nil {
			return err
		}
	}
	if err := d.write(ctx, 2); err != nil {
		return err
	}
	if err := d.archived(ctx); err != nil {
		return err
	}
	const name = "killed"
	target := d.rows - 1
	if err := d.fill(ctx, name, d.at(target)); err != nil {
		return err
	}
	s, err := d.restoring(ctx, name)
	if err != nil {
		return err
	}
	if err := s.stopped(ctx, "", "its data folder is being filled", s.isFilled); err != nil {
		return err
	}
	if _, err := harness.Signal(d.world.Get("Pod", s.pod), syscall.SIGKILL, container); err != nil {
		return unlessNode(err)
	}
	n.Addf("killed while its data folder was filled")
	if err := s.stopped(ctx, s.container, "WAL is being replayed", s.isReplayed); err != nil {
		return err
	}
	err = cluster.Kube.CoreV1().Pods(d.namespace).Delete(ctx, s.pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", s.pod, err)
	}
	n.Addf("deleted while WAL was replayed")
	if err := d.holds(ctx, name, target); err != nil {
		return err
	}
	_, err = d.psql(ctx, d.primary(), "DROP TABLE replayed")
	return err
}

// container is the name of PostgreSQL's container in a server's pod.
const container = "postgresql"

// unlessNode turns the error of a fault that cannot be caused here into that of a skipped check.
func unlessNode(err error) error {
	if errors.Is(err, harness.ErrNotNode) {
		return suite.SkippedError(err.Error())
	}
	return err
}

// restoring is the server of a cluster that is being restored.
type restoring struct {
	*timed

	// pod is the server's pod, volume the folder of its volume on the node, and container the ID of
	// its container when it was stopped last.
	pod, volume, container string
}

func (d *timed) restoring(ctx context.Context, name string) (*restoring, error) {
	s := &restoring{timed: d, pod: name + "-postgresql-0"}
	claim := "data-" + s.pod
	err := d.world.Await(ctx, started, "volume claim "+claim+" to be bound", func() (bool, string) {
		phase := harness.Field(d.world.Get("PersistentVolumeClaim", claim), "status", "phase")
		return phase == "Bound", "it is " + phase
	})
	if err != nil {
		return nil, err
	}
	s.volume, err = cluster.VolumePath(ctx, d.namespace, claim)
	return s, unlessNode(err)
}

// running returns the ID of the server's container, or "" if it does not run.
func (s *restoring) running() string {
	u := s.world.Get("Pod", s.pod)
	if u == nil || u.GetDeletionTimestamp() != nil {
		return ""
	}
	// A status that cannot be read counts as not running.
	statuses, _ := harness.List(u, "status", "containerStatuses")
	for _, c := range statuses {
		state, _ := c["state"].(map[string]any)
		if _, runs := state["running"]; runs && c["name"] == container {
			id, _ := c["containerID"].(string)
			return id
		}
	}
	return ""
}

// stopped waits until the restore, in another container than before, has reached a point, and stops
// its processes. They do not continue until they are killed.
func (s *restoring) stopped(ctx context.Context, before, what string, reached func() bool) error {
	err := s.world.Await(ctx, done, "the server of "+s.pod+" to run", func() (bool, string) {
		s.container = s.running()
		return s.container != "" && s.container != before, "container " + s.container + " runs; " + s.world.Claim("DatabaseCluster", s.name()).String()
	})
	if err != nil {
		return err
	}
	// No event of the cluster reports what arrives on a volume.
	err = wait.For(func(context.Context) (bool, error) {
		if s.delivered() {
			return false, errors.New("the restore was over before that was seen")
		}
		return reached(), nil
	}, wait.WithContext(ctx), wait.WithTimeout(done), wait.WithInterval(10*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("cannot stop %s while %s: %w; %s", s.pod, what, err, s.world.Claim("DatabaseCluster", s.name()))
	}
	if _, err := harness.Signal(s.world.Get("Pod", s.pod), syscall.SIGSTOP, container); err != nil {
		return unlessNode(err)
	}
	if s.delivered() || !reached() {
		return fmt.Errorf("the restore in %s went on before it was stopped while %s: this shows nothing", s.pod, what)
	}
	return nil
}

// name returns the name of the claim.
func (s *restoring) name() string { return s.pod[:len(s.pod)-len("-postgresql-0")] }

// stage returns the path of a file in the folder in which the restore works.
func (s *restoring) stage(file ...string) string {
	return filepath.Join(append([]string{s.volume, "pgdata.restoring"}, file...)...)
}

// controlFile is the last file of a backup that is restored.
const controlFile = "global/pg_control"

func (s *restoring) delivered() bool { return exists(filepath.Join(s.volume, "pgdata", controlFile)) }

func (s *restoring) isFilled() bool {
	return exists(s.stage("base")) && !exists(s.stage(controlFile))
}

// isReplayed reports whether segments have been fetched from the archive and a server replays them.
func (s *restoring) isReplayed() bool {
	entries, err := os.ReadDir(s.stage("pg_wal"))
	segments := 0
	for _, e := range entries {
		if _, ok := wal.Parse(e.Name()); ok {
			segments++
		}
	}
	return err == nil && segments > 1 && exists(s.stage("postmaster.pid"))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
