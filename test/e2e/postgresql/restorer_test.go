//go:build e2e

package postgresql

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

//go:embed scripts/restored.py
var restoredScript string

// restorerPod is the name of the pod in which backups are restored beside the database.
const restorerPod = "e2e-restorer"

// configured is the folder in a server's pod with the configuration of the repository.
const configured = "/etc/storeplane/"

// hasRestorer starts a pod that reaches the repository as the servers do, and runs nothing. A
// restore in it takes seconds, while a restored claim takes most of a minute.
func (d *database) hasRestorer(ctx context.Context) error {
	if d.world.Get("Pod", restorerPod) != nil {
		return nil
	}
	server := &corev1.Pod{}
	u := d.primary()
	if u == nil {
		return errors.New("there is not exactly one primary whose pod could be copied")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, server); err != nil {
		return fmt.Errorf("cannot read pod %s: %w", u.GetName(), err)
	}
	if _, err := cluster.Kube.NetworkingV1().NetworkPolicies(d.namespace).Create(ctx, admitsRestorer(d.namespace), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create NetworkPolicy %s: %w", restorerPod, err)
	}
	if _, err := cluster.Kube.CoreV1().Pods(d.namespace).Create(ctx, restorer(server), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create pod %s: %w", restorerPod, err)
	}
	return d.world.Await(ctx, soon, "pod "+restorerPod+" to run", func() (bool, string) {
		phase := harness.Field(d.world.Get("Pod", restorerPod), "status", "phase")
		return phase == "Running", "it is " + phase
	})
}

// admitsRestorer returns a NetworkPolicy that lets the restorer reach the repository, which the
// claim's own policies open to its servers alone.
func admitsRestorer(namespace string) *networkingv1.NetworkPolicy {
	from := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: restorerLabels()}}
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: restorerPod, Namespace: namespace}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/component": "repository"}},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{from}}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}}
}

func restorerLabels() map[string]string { return map[string]string{"e2e": restorerPod} }

// restorer returns a pod like that of a server, without its data, its probes and its programs.
func restorer(server *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: restorerPod, Namespace: server.Namespace, Labels: restorerLabels()}}
	out.Spec.AutomountServiceAccountToken = new(false)
	out.Spec.TerminationGracePeriodSeconds = new(int64(0))
	out.Spec.SecurityContext = server.Spec.SecurityContext
	wanted := map[string]bool{}
	for _, c := range server.Spec.Containers {
		if c.Name != container {
			continue
		}
		idle := corev1.Container{Name: "restorer", Image: c.Image, Command: []string{"sleep", "infinity"}, Env: c.Env, SecurityContext: c.SecurityContext}
		for _, m := range c.VolumeMounts {
			if strings.HasPrefix(m.MountPath, configured) || m.MountPath == "/tmp" || m.MountPath == "/dev/shm" {
				idle.VolumeMounts, wanted[m.Name] = append(idle.VolumeMounts, m), true
			}
		}
		out.Spec.Containers = append(out.Spec.Containers, idle)
	}
	for _, v := range server.Spec.Volumes {
		if wanted[v.Name] {
			out.Spec.Volumes = append(out.Spec.Volumes, v)
		}
	}
	return out
}

// archived is how long it may take until all earlier WAL is archived. An archiver that has failed
// three times waits a minute.
const archived = 2 * time.Minute

// restores restores the content of the archive beside the database, and checks that it has every
// row that was acknowledged before the log was switched.
func (d *database) restores(ctx context.Context, n notes) error {
	if err := d.hasRestorer(ctx); err != nil {
		return err
	}
	acks, err := d.ledger.Acknowledged(ctx)
	if err != nil {
		return err
	}
	switched := false
	err = harness.Await(ctx, archived, "the log to be archived", func(ctx context.Context) (bool, error) {
		if !switched {
			_, err := d.ask(ctx, "postgres", "SELECT pg_switch_wal()")
			switched = err == nil
			return false, err
		}
		waiting, err := d.ask(ctx, "postgres", "SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'")
		return err == nil && waiting == "0", errors.Join(err, fmt.Errorf("%s files wait", waiting))
	})
	if err != nil {
		return err
	}
	name, err := d.secret(connection, "dbname")
	if err != nil {
		return err
	}
	start := time.Now()
	out, err := cluster.Exec(ctx, d.namespace, restorerPod, "restorer", strings.NewReader(restoredScript), "python3", "-", name, d.ledger.Run)
	if err != nil {
		return err
	}
	var rows []harness.Rows
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		return fmt.Errorf("cannot decode which rows were restored: %w", err)
	}
	n.Addf("restored in %.0fs", time.Since(start).Seconds())
	if lost := harness.Missing(acks, rows); len(lost) > 0 {
		return fmt.Errorf("%d of %d acknowledged rows are not in the archive, the first one was %+v", len(lost), len(acks), lost[0])
	}
	return nil
}
