//go:build e2e

package platform

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	// systemNamespace is where Crossplane, its functions and providers run.
	systemNamespace = "crossplane-system"

	functionLabel = "pkg.crossplane.io/function"
	providerLabel = "pkg.crossplane.io/provider"

	// metricsPort is the port of metrics of the function, the provider and Crossplane.
	metricsPort = "8080"

	// failover is how long the provider may be without a leader.
	failover = 20 * time.Second
)

// third is an EcommercePlatform that starts while pods of the function are deleted.
var third = &shop{namespace: suiteName + "-third", name: "store", file: filed("platform/store.yaml")}

func replicas() types.Feature {
	return tests.Feature("the platform's own replicas", small.namespace, third.namespace).
		Full("the provider's leader is killed, and another one leads within 20 s", leaderKilled).
		Full("both replicas of the function are called", bothCalled).
		Full("a function's pod is deleted while a shop comes up, and no claim is told of it", functionDeleted).
		Cleared().
		Feature()
}

// systemPods returns the ready pods of a package of Storeplane.
func systemPods(ctx context.Context, label string) ([]corev1.Pod, error) {
	list, err := cluster.Kube.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, fmt.Errorf("cannot list the pods with label %s: %w", label, err)
	}
	var out []corev1.Pod
	for i := range list.Items {
		if harness.PodReady(&list.Items[i]) && strings.Contains(list.Items[i].Name, "storeplane") {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}

// awaitPair waits until both pods of a package are ready.
func awaitPair(ctx context.Context, label string) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	err := wait.For(func(ctx context.Context) (bool, error) {
		var err error
		pods, err = systemPods(ctx, label)
		return len(pods) == 2, err
	}, wait.WithContext(ctx), wait.WithTimeout(settled), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return nil, fmt.Errorf("cannot wait for two ready pods with label %s, there are %d: %w", label, len(pods), err)
	}
	return pods, nil
}

// leader returns the pod of the provider that is the leader, and the identity in the Lease.
func leader(ctx context.Context, pods []corev1.Pod) (pod, identity string, err error) {
	l, err := cluster.Kube.CoordinationV1().Leases(systemNamespace).Get(ctx, "storeplane-provider", metav1.GetOptions{})
	if err != nil {
		return "", "", fmt.Errorf("cannot get the provider's Lease: %w", err)
	}
	for _, p := range pods {
		if l.Spec.HolderIdentity != nil && strings.HasPrefix(*l.Spec.HolderIdentity, p.Name) {
			return p.Name, *l.Spec.HolderIdentity, nil
		}
	}
	return "", "", errors.New("no pod of the provider holds its Lease")
}

// leaderKilled kills the leader with a signal that leaves it no time to release its Lease.
func leaderKilled(ctx context.Context, n notes) error {
	pods, err := awaitPair(ctx, providerLabel)
	if err != nil {
		return err
	}
	name, was, err := leader(ctx, pods)
	if err != nil {
		return err
	}
	u, err := cluster.Get(ctx, "Pod", systemNamespace, name)
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := harness.Signal(u, syscall.SIGKILL); err != nil {
		if errors.Is(err, harness.ErrNotNode) {
			return skipped(err)
		}
		return err
	}
	var now string
	err = wait.For(func(ctx context.Context) (bool, error) {
		// A killed container restarts in the pod of the same name, with another identity.
		_, identity, lerr := leader(ctx, pods)
		now = identity
		return lerr == nil && identity != was, nil
	}, wait.WithContext(ctx), wait.WithTimeout(3*failover), wait.WithInterval(100*time.Millisecond), wait.WithImmediate())
	took := time.Since(start)
	if err != nil {
		return fmt.Errorf("cannot wait for another leader than %s, it is %s: %w", was, now, err)
	}
	n.Addf("another one leads after %.1fs", took.Seconds())
	if took > failover {
		err = fmt.Errorf("no replica led for %.1fs, longer than %s", took.Seconds(), failover)
	}
	_, perr := awaitPair(ctx, providerLabel)
	return errors.Join(err, perr)
}

// calls returns the number of calls that each replica of the function has answered.
func calls(ctx context.Context, pods []corev1.Pod) (map[string]float64, error) {
	out := map[string]float64{}
	for _, p := range pods {
		m, err := cluster.PodMetrics(ctx, systemNamespace, p.Name, metricsPort)
		if err != nil {
			return nil, err
		}
		out[p.Name] = m.Sum("storeplane_function_call_duration_seconds", nil)
	}
	return out, nil
}

func bothCalled(ctx context.Context, n notes) error {
	if err := small.ready(ctx); err != nil {
		return err
	}
	pods, err := awaitPair(ctx, functionLabel)
	if err != nil {
		return err
	}
	before, err := calls(ctx, pods)
	if err != nil {
		return err
	}
	var after map[string]float64
	// Each touch causes a call, and a Ready claim is composed once a minute besides.
	turn := 0
	err = wait.For(func(ctx context.Context) (bool, error) {
		turn++
		touch := harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"e2e.storeplane.example.com/touched": strconv.Itoa(turn)}}}
		if _, err := cluster.Patch(ctx, "EcommercePlatform", small.namespace, small.name, touch); err != nil {
			return false, err
		}
		var err error
		if after, err = calls(ctx, pods); err != nil {
			return false, err
		}
		for p := range before {
			if after[p] <= before[p] {
				return false, nil
			}
		}
		return true, nil
	}, wait.WithContext(ctx), wait.WithTimeout(3*time.Minute), wait.WithInterval(time.Second), wait.WithImmediate())
	for p := range before {
		n.Addf("%s %.0f calls", p, after[p]-before[p])
	}
	if err != nil {
		return fmt.Errorf("cannot wait for both replicas to be called: %w", err)
	}
	return nil
}

// functionDeleted deletes the pods as a rollout or a drain does: they may finish their calls.
func functionDeleted(ctx context.Context, n notes) error {
	pods, err := awaitPair(ctx, functionLabel)
	if err != nil {
		return err
	}
	if err := namespace(ctx, third.namespace); err != nil {
		return err
	}
	if third.world, err = cluster.Watch(ctx, third.namespace); err != nil {
		return err
	}
	start := time.Now()
	if err := third.file(ctx, third); err != nil {
		return err
	}
	for i, k := range []harness.Key{{Kind: "DatabaseCluster", Name: third.part("database")}, {Kind: "WebApp", Name: third.part("backend")}} {
		err := third.world.Await(ctx, settled, k.String()+" to appear", func() (bool, string) {
			return third.world.Get(k.Kind, k.Name) != nil, third.status().String()
		})
		if err != nil {
			return err
		}
		if err := cluster.Kube.CoreV1().Pods(systemNamespace).Delete(ctx, pods[i].Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("cannot delete pod %s: %w", pods[i].Name, err)
		}
		if _, err := awaitPair(ctx, functionLabel); err != nil {
			return err
		}
	}
	if err := third.ready(ctx); err != nil {
		return err
	}
	n.Addf("Ready after %.0fs", time.Since(start).Seconds())
	// Condition Responsive depends on the number of a claim's events, not on failed calls.
	return errors.Join(third.world.NeverFalse("Synced"), third.world.NeverFalse("Accepted"))
}
