//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	// diskMiB is the size of each server's disk: far larger than the database, and small for the node.
	diskMiB = 2000

	// diskFullFor is how long a disk is full.
	diskFullFor = 20 * time.Second

	// whenFull is the longest pause of writes while the primary's disk becomes full.
	whenFull = 10 * time.Second

	// whenTwoFull is that while the disks of two servers of three are full for twice diskFullFor: MySQL tries again each
	// minute whether there is room.
	whenTwoFull = 2*diskFullFor + 75*time.Second
)

// hasSmallDisks moves each server's volume to a disk of its own, which can be filled.
func (d *database) hasSmallDisks(ctx context.Context, n notes) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	if err := d.sleeps(ctx); err != nil {
		return err
	}
	for i := range baseSize {
		path, err := cluster.VolumePath(ctx, d.namespace, "data-"+server(i))
		if err != nil {
			return unlessNode(err)
		}
		if err := harness.Shrink(ctx, path, diskMiB); err != nil {
			return unlessNode(err)
		}
	}
	n.Addf("%d disks of %d MiB", baseSize, diskMiB)
	// The next checks fill these disks, and a new claim would have others.
	d.lasting = true
	if err := d.change(ctx, harness.Patch{"hibernated": nil}); err != nil {
		return err
	}
	return d.ready(ctx)
}

// sleeps hibernates the database and waits until no pod uses a volume.
func (d *database) sleeps(ctx context.Context) error {
	if err := d.change(ctx, harness.Patch{"hibernated": true}); err != nil {
		return err
	}
	return d.world.Await(ctx, settled, "the claim to hibernate", func() (bool, string) {
		c := d.status()
		return c.Status.Phase == "Hibernated" && len(d.pods()) == 0, fmt.Sprintf("there are %d pods; %s", len(d.pods()), c)
	})
}

// server returns the name of a server's pod.
func server(n int) string { return fmt.Sprintf("%s-%d", setName, n) }

// fillsPrimary fills the disk of the primary, fillsReplica that of a replica, and fillsAny one at random.
func (d *database) fillsPrimary(ctx context.Context, n notes) error {
	return d.fillsDisk(ctx, n, d.primary())
}

func (d *database) fillsReplica(ctx context.Context, n notes) error {
	return d.fillsDisk(ctx, n, d.with("replica")[0])
}

func (d *database) fillsAny(ctx context.Context, n notes, draw *rand.Rand) error {
	pods := d.pods()
	return d.fillsDisk(ctx, n, pods[draw.IntN(len(pods))])
}

// fillsDisk fills the disk of a server for a time: it leaves the group, another one takes the writes, and the claim
// names the volume.
func (d *database) fillsDisk(ctx context.Context, n notes, pod *unstructured.Unstructured) (err error) {
	path, err := cluster.VolumePath(ctx, d.namespace, "data-"+pod.GetName())
	if err != nil {
		return unlessNode(err)
	}
	start, began := time.Now(), time.Now()
	free, err := harness.Fill(path)
	if err != nil {
		return unlessNode(err)
	}
	want := "Waiting for room on volume claim data-" + pod.GetName() + ", which is full: raise storageSize"
	err = d.says(ctx, soon, want)
	n.Addf("reported after %.0fs", time.Since(start).Seconds())
	if p := d.primary(); err == nil && (p == nil || p.GetName() == pod.GetName()) {
		err = fmt.Errorf("no other server leads than %s: %s", pod.GetName(), d.status())
	}
	if err == nil {
		err = harness.Until(ctx, time.Now().Add(diskFullFor))
	}
	start = time.Now()
	if err = errors.Join(err, free()); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	n.Addf("back %.0fs after there was room", time.Since(start).Seconds())
	left, err := d.leftForRoom(ctx, began)
	if err == nil && !slices.Equal(left, []string{pod.GetName()}) {
		err = fmt.Errorf("events report that %v left the group, and %s did", left, pod.GetName())
	}
	_, copied, jerr := d.joins(ctx, began)
	if jerr == nil && copied > 0 {
		jerr = fmt.Errorf("%d servers joined by a copy, and the others have all that they lack", copied)
	}
	return errors.Join(err, jerr)
}

// leftForRoom returns the servers of which an event about the claim reports since a time that they left their group, since
// their volume is full.
func (d *database) leftForRoom(ctx context.Context, since time.Time) ([]string, error) {
	events, err := cluster.Kube.CoreV1().Events(d.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + appsv1.ReasonVolumeFull})
	if err != nil {
		return nil, fmt.Errorf("cannot list events: %w", err)
	}
	var out []string
	for _, e := range events.Items {
		// The time of an event has no fractions of a second.
		if pod, _, ok := strings.Cut(e.Message, " has left its group"); ok && !e.LastTimestamp.Time.Before(since.Truncate(time.Second)) {
			out = append(out, pod)
		}
	}
	return out, nil
}

// fillsTwo fills the disks of the primary and of a replica for a time: none of them leaves the group, since the third
// server would not be its majority, and writes continue once there is room. MySQL itself may end for that.
func (d *database) fillsTwo(ctx context.Context, n notes) error {
	primary, replicas := d.primary(), d.with("replica")
	if primary == nil || len(replicas) == 0 {
		return fmt.Errorf("there is no primary with a replica: %s", d.status())
	}
	full := []*unstructured.Unstructured{primary, replicas[0]}
	var paths []string
	for _, pod := range full {
		path, err := cluster.VolumePath(ctx, d.namespace, "data-"+pod.GetName())
		if err != nil {
			return unlessNode(err)
		}
		paths = append(paths, path)
	}
	start := time.Now()
	free, err := fillTogether(paths)
	if err != nil {
		return unlessNode(err)
	}
	now, acknowledged, err := d.staysFull(ctx, start)
	if err = errors.Join(err, free()); err != nil {
		return err
	}
	aborted, err := d.aborted(ctx, full, start)
	if err != nil {
		return err
	}
	if !aborted[primary.GetName()] && acknowledged > 0 {
		return fmt.Errorf("%d writes were acknowledged, and the primary's disk is full", acknowledged)
	}
	if len(aborted) > 0 {
		n.Addf("%d ended by themselves", len(aborted))
	}
	roomy := time.Now()
	if err := d.ledger.Flows(ctx, whenTwoFull, now); err != nil {
		return err
	}
	n.Addf("a write %.0fs after there was room", time.Since(roomy).Seconds())
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	left, err := d.leftForRoom(ctx, start)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%v left the group, and the others that have room are no majority", left)
	}
	incremental, copied, jerr := d.joins(ctx, start)
	if jerr == nil && (incremental > len(aborted) || copied > 0) {
		jerr = fmt.Errorf("%d servers joined again and %d by a copy, and none may leave but the %d that ended by themselves", incremental, copied, len(aborted))
	}
	return errors.Join(err, jerr)
}

// aborts is what a supervisor logs if MySQL has ended by itself: it does so, or crashes, where it has no room to begin a binary
// log or a redo log. The others go on, then.
const aborts = `"why":"MySQL has ended with code`

// aborted returns the servers of which MySQL has ended by itself since a time.
func (d *database) aborted(ctx context.Context, servers []*unstructured.Unstructured, since time.Time) (map[string]bool, error) {
	out := map[string]bool{}
	for _, pod := range servers {
		log, err := d.log(ctx, pod.GetName(), since)
		if err != nil {
			return nil, err
		}
		if strings.Contains(log, aborts) {
			out[pod.GetName()] = true
		}
	}
	return out, nil
}

// staysFull waits for twice diskFullFor, and returns how many writes were acknowledged in its second half: none if the
// primary has no room.
func (d *database) staysFull(ctx context.Context, start time.Time) (now harness.Mark, acknowledged int, err error) {
	if err := harness.Until(ctx, start.Add(diskFullFor)); err != nil {
		return now, 0, err
	}
	half, err := d.ledger.Mark(ctx)
	if err != nil {
		return now, 0, err
	}
	if err := harness.Until(ctx, start.Add(2*diskFullFor)); err != nil {
		return now, 0, err
	}
	now, err = d.ledger.Mark(ctx)
	return now, now.Acknowledged - half.Acknowledged, err
}

// fillTogether fills disks at the same time: a server whose disk is full for seconds while those of the others are not
// leaves its group, and is right to.
func fillTogether(paths []string) (free func() error, err error) {
	frees, errs := make([]func() error, len(paths)), make([]error, len(paths))
	var filling sync.WaitGroup
	for i, path := range paths {
		filling.Go(func() { frees[i], errs[i] = harness.Fill(path) })
	}
	filling.Wait()
	free = func() error {
		var errs []error
		for _, f := range frees {
			if f != nil {
				errs = append(errs, f())
			}
		}
		return errors.Join(errs...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, free())
	}
	return free, nil
}

// says waits until the claim says something.
func (d *database) says(ctx context.Context, within time.Duration, want string) error {
	return d.world.Await(ctx, within, fmt.Sprintf("the claim to report %q", want), func() (bool, string) {
		is := d.status().String()
		return strings.Contains(is, want), is
	})
}
