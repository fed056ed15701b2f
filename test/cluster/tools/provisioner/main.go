// Command provisioner provisions the volumes of the test cluster. Each PersistentVolume is a
// local volume: a folder of the host, which is removed with the volume.
//
// The volumes are local ones and not hostPath ones, because the kubelet applies a pod's fsGroup
// to the former and ignores it for the latter, and the databases under test do not run as root.
// The program also acts as the resizer: a folder needs no work to grow, so an increased request
// is granted at once. Sizes are not enforced.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "Kubeconfig of a user who may write volumes and claims.")
	dir := flag.String("dir", "", "Folder under which the volumes are made.")
	name := flag.String("name", "storeplane.example.com/local", "Provisioner that storage classes name.")
	port := flag.Int("metrics-port", 8182, "Port of 127.0.0.1 that serves metrics, and shows that it runs.")
	flag.Parse()

	if err := run(*kubeconfig, *dir, *name, int32(*port)); err != nil { //nolint:gosec // A port fits into int32.
		log.Fatal(err)
	}
}

func run(kubeconfig, dir, name string, port int32) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	// Folders have mode 0777 so that pods without an fsGroup can write to them too, which a umask
	// would prevent.
	syscall.Umask(0)

	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read kubeconfig %s: %w", kubeconfig, err)
	}
	cfg.QPS, cfg.Burst = 100, 200
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}

	shared := informers.NewSharedInformerFactory(client, 0)
	r, err := newResizer(client, shared, name)
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	go r.run(ctx)

	controller.NewProvisionController(ctx, client, name, &folders{root: dir},
		controller.LeaderElection(false),
		controller.MetricsAddress("127.0.0.1"),
		controller.MetricsPort(port),
	).Run(ctx)
	return nil
}
