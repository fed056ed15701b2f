package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// agents are the programs that make the network of the embedded cluster's one real node. They process all
// NetworkPolicies and Services again whenever a pod changes, though no simulated pod is on that node. On
// other clusters they do not share the processors of the API server.
var agents = []string{"kube-router", "kube-proxy"}

// renice sets the priority of the agents: 0 is the default, and with 19 they run after all others.
func renice(priority int) error {
	var errs []error
	for _, a := range agents {
		errs = append(errs, harness.Renice(os.Getenv("KUBECONFIG"), a, priority))
	}
	return errors.Join(errs...)
}

// fake is the label and the taint of simulated nodes.
const fake = "storeplane.example.com/simulated"

type bench struct {
	cli     *cli
	cluster *harness.Cluster

	kwok  *exec.Cmd
	logs  *os.File
	ended chan struct{}

	managers context.CancelFunc
}

// start creates the namespace, the simulated nodes and the volumes, and starts kwok and the
// simulated instance managers. It waits until the nodes are ready.
func (b *bench) start(ctx context.Context) error {
	if err := b.cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	nodes := b.cluster.Kube.CoreV1().Nodes()
	for i := range b.cli.Nodes {
		capacity := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1k"),
			corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("simulated-%d", i), Labels: map[string]string{fake: "true"}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: fake, Effect: corev1.TaintEffectNoSchedule}}},
			Status:     corev1.NodeStatus{Allocatable: capacity, Capacity: capacity},
		}
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil && !kerrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot simulate a node: %w", err)
		}
	}
	if err := renice(19); err != nil {
		return fmt.Errorf("cannot have the agents of the node run after all others: %w", err)
	}
	var err error
	if b.logs, err = os.CreateTemp("", "bench-scale-kwok-*.log"); err != nil {
		return fmt.Errorf("cannot make a log: %w", err)
	}
	args := []string{"--kubeconfig", os.Getenv("KUBECONFIG"), "--manage-nodes-with-label-selector", fake + "=true", "--node-lease-duration-seconds", "40"}
	for _, f := range b.cli.Stages {
		args = append(args, "--config", f)
	}
	// kwok must outlive ctx: pods on simulated nodes only terminate while it runs, also after an
	// interrupt.
	b.kwok = exec.CommandContext(context.WithoutCancel(ctx), b.cli.Kwok, args...)
	b.kwok.Stdout, b.kwok.Stderr = b.logs, b.logs
	if err := b.kwok.Start(); err != nil {
		return fmt.Errorf("cannot start kwok: %w", err)
	}
	b.ended = make(chan struct{})
	go func() {
		_ = b.kwok.Wait() // stop kills it, or its log has the reason.
		close(b.ended)
	}()
	if err := b.volumes(ctx); err != nil {
		return err
	}
	played, cancel := context.WithCancel(ctx)
	b.managers = cancel
	if err := b.playManagers(played); err != nil {
		return err
	}
	return b.until(ctx, time.Minute, "the simulated nodes to be ready", func() (bool, error) {
		list, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: fake})
		ready := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		return ready == b.cli.Nodes, err
	})
}

// removeLeft removes the nodes and volumes of a run that was killed or has kept its claims, and
// the pods in the namespace. Without kwok those pods would never terminate, so their namespace
// could not be deleted.
func removeLeft(ctx context.Context) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("cannot use KUBECONFIG: %w", err)
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("cannot create a client: %w", err)
	}
	left := metav1.ListOptions{LabelSelector: fake}
	list, err := kube.CoreV1().Nodes().List(ctx, left)
	if err != nil || len(list.Items) == 0 {
		return err
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	return errors.Join(
		kube.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, left),
		kube.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}),
		kube.CoreV1().PersistentVolumes().DeleteCollection(ctx, metav1.DeleteOptions{}, left),
	)
}

// stop removes the claims, the nodes and the volumes unless they are to be kept, and ends kwok.
func (b *bench) stop() {
	ctx := context.Background() // The clean-up also runs after an interrupt.
	if b.managers != nil {
		b.managers()
	}
	if !b.cli.Keep {
		// The namespace is deleted before the nodes: pods of deleted nodes would not terminate.
		_ = b.cluster.Sweep(ctx, namespace)
		_ = b.cluster.Kube.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: fake})
		_ = b.cluster.Kube.CoreV1().PersistentVolumes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: fake})
	}
	_ = renice(0)
	if b.kwok != nil && b.kwok.Process != nil {
		_ = b.kwok.Process.Kill()
		<-b.ended
	}
	if b.logs != nil {
		_ = b.logs.Close()
		_ = os.Remove(b.logs.Name())
	}
}

// kwokFailed returns an error with the end of kwok's log if kwok has ended.
func (b *bench) kwokFailed() error {
	select {
	case <-b.ended:
	default:
		return nil
	}
	if _, err := b.logs.Seek(-min(2048, offset(b.logs)), io.SeekEnd); err != nil {
		return errors.New("kwok has ended")
	}
	words, _ := io.ReadAll(b.logs)
	return fmt.Errorf("kwok has ended: %s", words)
}

func offset(f *os.File) int64 {
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0
	}
	return at
}

// until calls done four times a second until it returns true. It fails if kwok has ended.
func (b *bench) until(ctx context.Context, within time.Duration, what string, done func() (bool, error)) error {
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if failed := b.kwokFailed(); failed != nil {
			return failed
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted while waiting for %s: %w", what, ctx.Err())
		case <-timeout.C:
			return errors.Join(fmt.Errorf("waited %s for %s in vain", within, what), err)
		case <-tick.C:
		}
	}
}
