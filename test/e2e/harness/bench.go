package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	ossignal "os/signal"
	"syscall"

	"github.com/alecthomas/kong"
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

// BenchMain is the main function of a benchmark: it parses the flags into cli, and runs it until a
// signal.
func BenchMain(name, description string, cli any) {
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := kong.Parse(cli, kong.Name(name), kong.Description(description), kong.BindTo(ctx, (*context.Context)(nil))).Run()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
