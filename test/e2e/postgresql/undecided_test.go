//go:build e2e

package postgresql

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

//go:embed scripts/volumes.sh
var volumesScript string

// volumesPod is the name of the pod in which volumes are changed while no server runs.
const volumesPod = "e2e-volumes"

// leaderless is how long it is checked that no server becomes primary.
const leaderless = 20 * time.Second

// meetsForeign checks a claim of which one volume holds another database: no server becomes primary
// until that volume is removed.
func (d *database) meetsForeign(ctx context.Context, n notes) (err error) {
	if err := d.ready(ctx); err != nil {
		return err
	}
	// The next check must not wait for a claim without a primary.
	defer func() { d.broken = d.broken || err != nil }()
	const count = "SELECT count(*) FROM e2e_own"
	if _, err := d.ask(ctx, "postgres", "DROP TABLE IF EXISTS e2e_own; CREATE TABLE e2e_own AS SELECT generate_series(1, 100)"); err != nil {
		return err
	}
	if err := d.changesVolumes(ctx, "foreign", server(1)); err != nil {
		return err
	}
	if err := d.fileOf(ctx, baseSize); err != nil {
		return err
	}
	if err := d.undecided(ctx, n, "hold different databases, with system identifiers"); err != nil {
		return err
	}
	// The solution that keeps the data of the other volumes.
	if err := d.leavesOut(ctx, server(1)); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	if have, err := d.ask(ctx, "postgres", count); err != nil || have != "100" {
		return errors.Join(err, fmt.Errorf("there were 100 rows, and are %q", have))
	}
	_, err = d.ask(ctx, "postgres", "DROP TABLE e2e_own")
	return err
}

// meetsParted checks a claim of which two servers have continued with the database independently:
// no server becomes primary until the annotation names a volume.
func (d *database) meetsParted(ctx context.Context, n notes) (err error) {
	if err := d.ready(ctx); err != nil {
		return err
	}
	defer func() { d.broken = d.broken || err != nil }()
	if err := d.changesVolumes(ctx, "part", server(0), server(1)); err != nil {
		return err
	}
	if err := d.fileOf(ctx, baseSize); err != nil {
		return err
	}
	if err := d.undecided(ctx, n, "hold one database that two servers went on with"); err != nil {
		return err
	}
	if err := d.says(ctx, soon, instance.LeadWithAnnotation+"=<volume claim>@"); err != nil {
		return err
	}
	uid, _, _ := strings.Cut(string(d.world.Get("DatabaseCluster", claimName).GetUID()), "-")
	named := harness.Patch{instance.LeadWithAnnotation: "data-" + server(1) + "@" + uid}
	if _, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, claimName, harness.Patch{"metadata": harness.Patch{"annotations": named}}); err != nil {
		return err
	}
	start := time.Now()
	err = d.world.Await(ctx, settled, server(1)+" to lead, whose volume is named", func() (bool, string) {
		p := d.primary()
		if p == nil {
			return false, "not exactly one pod is primary; " + d.status().String()
		}
		return p.GetName() == server(1), p.GetName() + " leads"
	})
	if err != nil {
		return err
	}
	n.Addf("leads %.1fs after the annotation", time.Since(start).Seconds())
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	if have, err := d.ask(ctx, "postgres", "SELECT volume FROM e2e_parted"); err != nil || have != "second" {
		return errors.Join(err, fmt.Errorf("the data is that of the %q volume, not of the second, which was named", have))
	}
	_, err = d.ask(ctx, "postgres", "DROP TABLE e2e_parted")
	return err
}

// undecided waits until the claim reports why there is no primary, and checks that there is none.
func (d *database) undecided(ctx context.Context, n notes, want string) error {
	start := time.Now()
	if err := d.says(ctx, settled, want); err != nil {
		return err
	}
	n.Addf("reported after %.1fs", time.Since(start).Seconds())
	err := d.world.Await(ctx, soon, "phase Failed, and ReplicationHealthy False with LeaderUndecided", func() (bool, string) {
		c := d.status()
		return c.Status.Phase == "Failed" && c.Condition("ReplicationHealthy").Reason == "LeaderUndecided", c.String()
	})
	if err != nil {
		return err
	}
	return d.world.Hold(ctx, leaderless, "no server leads", func() (bool, string) {
		for _, p := range d.pods() {
			if p.GetLabels()[roleLabel] == "primary" {
				return false, p.GetName() + " leads; " + d.status().String()
			}
		}
		return true, ""
	})
}

// leavesOut removes a server's volume, so that it begins with a new one.
func (d *database) leavesOut(ctx context.Context, server string) error {
	volume, pod := d.world.Get("PersistentVolumeClaim", "data-"+server), d.world.Get("Pod", server)
	if volume == nil || pod == nil {
		return fmt.Errorf("server %s has no pod or no volume claim", server)
	}
	// The volume claim is removed once no pod uses it.
	if err := cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, volume.GetName()); err != nil {
		return err
	}
	if err := d.deletePod(ctx, pod, new(int64(0))); err != nil {
		return err
	}
	return d.replaced(ctx, "PersistentVolumeClaim", volume)
}

// changesVolumes deletes the claim, which keeps its volumes, and changes those of some servers.
func (d *database) changesVolumes(ctx context.Context, how string, servers ...string) error {
	like := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.world.Get("Pod", servers[0]).Object, like); err != nil {
		return fmt.Errorf("cannot read pod %s: %w", servers[0], err)
	}
	if err := d.stopLedger(ctx); err != nil {
		return err
	}
	if _, err := d.end(ctx, stays(d.volumes())...); err != nil {
		return err
	}
	pods := cluster.Kube.CoreV1().Pods(d.namespace)
	if _, err := pods.Create(ctx, changer(like, how, servers), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create pod %s: %w", volumesPod, err)
	}
	phase := ""
	err := d.world.Await(ctx, settled, "pod "+volumesPod+" to end", func() (bool, string) {
		phase = harness.Field(d.world.Get("Pod", volumesPod), "status", "phase")
		return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed), "it is " + phase
	})
	if err == nil && phase == string(corev1.PodFailed) {
		log, lerr := pods.GetLogs(volumesPod, &corev1.PodLogOptions{}).DoRaw(ctx)
		err = errors.Join(fmt.Errorf("cannot change volumes: %s", log), lerr)
	}
	if err != nil {
		return err
	}
	if err := cluster.Delete(ctx, "Pod", d.namespace, volumesPod); err != nil {
		return err
	}
	return d.world.AwaitGone(ctx, soon, "Pod", volumesPod)
}

// changer returns a pod with the image of a server and the volumes of some servers.
func changer(like *corev1.Pod, how string, servers []string) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: volumesPod, Namespace: like.Namespace}}
	out.Spec.AutomountServiceAccountToken = new(false)
	out.Spec.RestartPolicy = corev1.RestartPolicyNever
	out.Spec.TerminationGracePeriodSeconds = new(int64(0))
	out.Spec.SecurityContext = like.Spec.SecurityContext
	c := corev1.Container{Name: "volumes", Command: []string{"sh", "-c", volumesScript, "volumes.sh", how}}
	for _, ct := range like.Spec.Containers {
		if ct.Name == container {
			c.Image, c.SecurityContext = ct.Image, ct.SecurityContext
		}
	}
	mount := func(name, path string, source corev1.VolumeSource) {
		out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
	}
	mount("tmp", "/tmp", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	mount("shm", "/dev/shm", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
	for _, s := range servers {
		mount(s, "/volumes/"+s, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + s}})
		c.Command = append(c.Command, "/volumes/"+s)
	}
	out.Spec.Containers = []corev1.Container{c}
	return out
}
