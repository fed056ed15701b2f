//go:build e2e

package mysql

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

//go:embed scripts/volumes.sh
var volumesScript string

const (
	// volumesPod is the name of the pod in which volumes are changed while no server runs.
	volumesPod = "e2e-volumes"

	// leaderless is how long it is checked that no server becomes the primary.
	leaderless = 20 * time.Second
)

// advice is the annotation that the claim advises, with its state.
var advice = regexp.MustCompile(regexp.QuoteMeta(instance.LeadWithAnnotation) + `=<volume claim>@([0-9a-f-]+)`)

// meetsForeign: of a claim over volumes of which one holds another database no server leads until that is removed.
func (d *database) meetsForeign(ctx context.Context, n notes) error {
	if err := d.prepares(ctx, "CREATE TABLE kept (n INT PRIMARY KEY)", "INSERT INTO kept VALUES (1), (2), (3)"); err != nil {
		return err
	}
	if err := d.changesVolumes(ctx, "foreign", server(1)); err != nil {
		return err
	}
	if err := d.undecided(ctx, n, "The leading volume is undecided: volume claim data-"+server(1)+" has transactions"); err != nil {
		return err
	}
	// The solution that keeps the data of the other volumes.
	volume, pod := d.world.Get("PersistentVolumeClaim", "data-"+server(1)), d.world.Get("Pod", server(1))
	if err := cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, volume.GetName()); err != nil {
		return err
	}
	if err := errors.Join(d.deletePod(ctx, pod), d.replaced(ctx, "PersistentVolumeClaim", volume), d.whole(ctx, baseSize)); err != nil {
		return err
	}
	if have, err := d.rows(ctx, "kept"); err != nil || have != 3 {
		return fmt.Errorf("there were 3 rows, and are %d: %w", have, err)
	}
	_, err := d.sql(ctx, claimName, "DROP TABLE kept")
	return err
}

// meetsParted: of a claim over volumes with which two servers went on by themselves no server leads until the
// annotation names a volume.
func (d *database) meetsParted(ctx context.Context, n notes) error {
	if err := d.prepares(ctx); err != nil {
		return err
	}
	if err := d.changesVolumes(ctx, "part", server(0), server(1)); err != nil {
		return err
	}
	if err := d.undecided(ctx, n, "The leading volume is undecided: volume claim data-"+server(0)+" has transactions"); err != nil {
		return err
	}
	if err := d.leadsWith(ctx, n, server(1)); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	if have, err := d.sql(ctx, claimName, "SELECT volume FROM parted"); err != nil || strings.TrimSpace(have) != "second" {
		return fmt.Errorf("the data is that of the %q volume, and the second one was named: %w", have, err)
	}
	_, err := d.sql(ctx, claimName, "DROP TABLE parted")
	return err
}

// leadsWith sets the annotation that the claim advises, with the volume of a server, and waits until that leads.
func (d *database) leadsWith(ctx context.Context, n notes, server string) error {
	found := advice.FindStringSubmatch(d.status().String())
	if found == nil {
		return fmt.Errorf("the claim advises no annotation: %s", d.status())
	}
	named := harness.Patch{instance.LeadWithAnnotation: "data-" + server + "@" + found[1]}
	if _, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, claimName, harness.Patch{"metadata": harness.Patch{"annotations": named}}); err != nil {
		return err
	}
	start := time.Now()
	err := d.world.Await(ctx, settled, server+" to lead, whose volume is named", func() (bool, string) {
		p := d.primary()
		return p != nil && p.GetName() == server, d.status().String()
	})
	n.Addf("leads %.1fs after the annotation", time.Since(start).Seconds())
	return err
}

// prepares waits until all servers are well, stops the ledger, and executes statements.
func (d *database) prepares(ctx context.Context, statements ...string) error {
	if err := errors.Join(d.ready(ctx), d.startStore(ctx), d.stopLedger(ctx)); err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := d.sql(ctx, claimName, s); err != nil {
			return err
		}
	}
	return nil
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
		return len(d.with("primary")) == 0, d.status().String()
	})
}

// changesVolumes deletes the claim, which keeps its volumes, changes those of some servers, and applies the claim again.
func (d *database) changesVolumes(ctx context.Context, how string, servers ...string) error {
	like, err := typed(d.world.Get("Pod", servers[0]))
	if err != nil {
		return err
	}
	// One after the other: no volume is changed while a server may run on it.
	if err := d.end(ctx); err != nil {
		return err
	}
	if err := d.runsOnVolumes(ctx, like, how, servers...); err != nil {
		return err
	}
	return d.claimAgain(ctx)
}

// claimAgain applies the claim after it was deleted.
func (d *database) claimAgain(ctx context.Context) error {
	u, err := manifests.Read(d.manifest, map[string]string{"NAMESPACE": d.namespace})
	if err != nil {
		return err
	}
	_, err = cluster.Create(ctx, u)
	return err
}

// typed returns a pod as its own type.
func typed(u *unstructured.Unstructured) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return nil, fmt.Errorf("cannot read pod %s: %w", u.GetName(), err)
	}
	return p, nil
}

// runsOnVolumes changes the volumes of servers that do not run. like is the pod of one.
func (d *database) runsOnVolumes(ctx context.Context, like *corev1.Pod, how string, servers ...string) (err error) {
	pods := cluster.Kube.CoreV1().Pods(d.namespace)
	if _, err := pods.Create(ctx, changer(like, how, servers), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create pod %s: %w", volumesPod, err)
	}
	// It holds the volumes, and its name.
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, cluster.Delete(ctx, "Pod", d.namespace, volumesPod), d.world.AwaitGone(ctx, soon, "Pod", volumesPod))
	}()
	phase := ""
	err = d.world.Await(ctx, settled, "pod "+volumesPod+" to end", func() (bool, string) {
		phase = harness.Field(d.world.Get("Pod", volumesPod), "status", "phase")
		return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed), "it is " + phase
	})
	if err == nil && phase == string(corev1.PodFailed) {
		log, lerr := pods.GetLogs(volumesPod, &corev1.PodLogOptions{}).DoRaw(ctx)
		err = errors.Join(fmt.Errorf("cannot change volumes: %s", log), lerr)
	}
	return err
}

// changer returns a pod with the image of a server and the volumes of some servers.
func changer(like *corev1.Pod, how string, servers []string) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: volumesPod, Namespace: like.Namespace}}
	out.Spec.AutomountServiceAccountToken = new(false)
	out.Spec.RestartPolicy = corev1.RestartPolicyNever
	out.Spec.TerminationGracePeriodSeconds = new(int64(0))
	out.Spec.SecurityContext = like.Spec.SecurityContext
	// Nodes may be cordoned, so that a server does not come back.
	out.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
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
	for _, s := range servers {
		mount(s, "/volumes/"+s, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + s}})
		c.Command = append(c.Command, "/volumes/"+s)
	}
	out.Spec.Containers = []corev1.Container{c}
	return out
}
