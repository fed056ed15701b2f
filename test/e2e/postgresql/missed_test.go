//go:build e2e

package postgresql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// missesTimeline checks two servers without synchronous replication, of which one was frozen while
// the other one continued on a new timeline. If the other one is then down, the first one must not
// become primary and has to report why, and no acknowledged row is lost.
func (d *database) missesTimeline(ctx context.Context, n notes) error {
	if err := d.begins(ctx, "17"); err != nil {
		return err
	}
	if err := d.change(ctx, harness.Patch{"size": 2}); err != nil {
		return err
	}
	if err := d.streams(ctx); err != nil {
		return err
	}
	primary, replica := d.primary(), d.replica()
	if _, err := d.ask(ctx, "app", "CREATE TABLE missed (row int)"); err != nil {
		return err
	}

	// Thaw it in any case, because frozen processes would stay behind.
	defer func() { _ = thaw(replica) }()
	if _, err := harness.Signal(replica, syscall.SIGSTOP); err != nil {
		return unlessNode(err)
	}
	if err := d.deletePod(ctx, primary, new(int64(0))); err != nil {
		return err
	}
	if err := d.replaced(ctx, "Pod", primary); err != nil {
		return err
	}
	if err := d.succeeded(ctx, primary); err != nil {
		return err
	}
	// The pod has the label of a primary before it takes writes.
	err := d.world.Await(ctx, soon, "the next primary to take writes", func() (bool, string) {
		recovers, err := d.ask(ctx, "postgres", "SELECT pg_is_in_recovery()")
		return err == nil && recovers == "f", fmt.Sprint(recovers, err)
	})
	if err != nil {
		return err
	}
	led, err := d.segment(ctx)
	if err != nil {
		return err
	}
	if _, err := d.ask(ctx, "app", "INSERT INTO missed SELECT generate_series(1, 1000)"); err != nil {
		return err
	}
	inserted := time.Now()
	if err := d.published(ctx, led.Timeline); err != nil {
		return err
	}
	n.Addf("timeline published %.2fs after the rows were acknowledged, at most", time.Since(inserted).Seconds())

	again := d.primary()
	if again.GetName() != primary.GetName() {
		return fmt.Errorf("%s leads, which was frozen", again.GetName())
	}
	// No new pod is scheduled, so this server stays down. It is not frozen, because the kubelet
	// would restart it.
	defer func() { _ = cluster.Cordon(context.WithoutCancel(ctx), false) }()
	if err := cluster.Cordon(ctx, true); err != nil {
		return err
	}
	if err := d.deletePod(ctx, again, new(int64(0))); err != nil {
		return err
	}
	if err := d.replaced(ctx, "Pod", again); err != nil {
		return err
	}
	if err := thaw(replica); err != nil {
		return err
	}
	alone := time.Now()
	err = d.world.Await(ctx, 3*time.Minute, "the claim to say that the server that is left never saw the last timeline", func() (bool, string) {
		c := d.status()
		if p := d.world.Get("Pod", replica.GetName()); p.GetLabels()[roleLabel] == "primary" {
			return true, ""
		}
		return strings.Contains(c.Status.Message, "has not replayed"), c.String()
	})
	if err != nil {
		return err
	}
	if p := d.world.Get("Pod", replica.GetName()); p.GetLabels()[roleLabel] == "primary" {
		return errors.New("the server that never saw the last timeline leads, and 1000 acknowledged rows are not there")
	}
	n.Addf("reported after %.1fs: %s", time.Since(alone).Seconds(), d.status().Status.Message)

	if err := cluster.Cordon(ctx, false); err != nil {
		return err
	}
	if err := d.streams(ctx); err != nil {
		return err
	}
	rows, err := d.ask(ctx, "app", "SELECT count(*) FROM missed")
	if err != nil || rows != "1000" {
		return errors.Join(err, fmt.Errorf("1000 rows were acknowledged, and %s are there", rows))
	}
	now, err := d.segment(ctx)
	if err != nil {
		return err
	}
	n.Addf("timeline %d, then %d", led.Timeline, now.Timeline)
	_, err = d.end(ctx)
	return err
}

// published waits until Patroni has published the history of a timeline: from then on no server
// that lacks it becomes primary.
func (d *database) published(ctx context.Context, timeline uint32) error {
	return d.world.Await(ctx, soon, fmt.Sprintf("the history of timeline %d to be published", timeline), func() (bool, string) {
		config := d.world.Get("ConfigMap", configName)
		if config == nil {
			return false, "there is no ConfigMap " + configName
		}
		history := config.GetAnnotations()["history"]
		var lines [][]any
		// A history that cannot be decoded has no last line.
		_ = json.Unmarshal([]byte(history), &lines)
		if n := len(lines); n > 0 && len(lines[n-1]) > 0 {
			last, ok := lines[n-1][0].(float64)
			return ok && uint32(last)+1 == timeline, history
		}
		return false, history
	})
}

// streams waits until a standby follows the primary and the claim is Ready.
func (d *database) streams(ctx context.Context) error {
	return d.world.Await(ctx, settled, "a standby to follow the primary", func() (bool, string) {
		following, err := d.ask(ctx, "postgres", "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
		if err != nil {
			return false, err.Error()
		}
		c := d.status()
		return following == "1" && c.Is("Ready") && d.primary() != nil && d.replica() != nil, following + " follow; " + c.String()
	})
}
