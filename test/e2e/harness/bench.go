package harness

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// Bench calls measure with the cluster of KUBECONFIG. The namespace is removed before and, unless
// keep is set, afterwards. Without a cluster the error names the make target that starts one.
func Bench(ctx context.Context, target, namespace string, keep bool, measure func(*Cluster) error) error {
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" || os.Getenv("REGISTRY") == "" {
		return errors.New("cannot find a cluster: set KUBECONFIG and REGISTRY, or run make " + target)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot use KUBECONFIG %s: %w", kubeconfig, err)
	}
	cluster, err := NewCluster(cfg)
	if err != nil {
		return err
	}
	if err := cluster.Sweep(ctx, namespace); err != nil {
		return err
	}
	if !keep {
		// Clean up also after an interrupt, when ctx has ended.
		defer func() { _ = cluster.Sweep(context.WithoutCancel(ctx), namespace) }()
	}
	return measure(cluster)
}
