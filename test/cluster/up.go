package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// upCmd is the command up.
type upCmd struct {
	Keep bool `help:"Fail where the control plane or the node cannot be repaired, instead of building a new cluster."`
}

// Run starts the processes that do not run and restarts those that are not healthy. It removes a
// cluster of an earlier run whose control plane or node cannot be repaired, and builds a new one.
func (u *upCmd) Run(ctx context.Context, c *cluster) error {
	if err := c.preflight(); err != nil {
		return err
	}
	unlock, err := c.lockCluster(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	start := time.Now()

	err = stage("debian packages", func() (string, error) { return installPackages(ctx, c.buildLog("apt"), clusterPackages()) })
	if err != nil {
		return err
	}
	err = stage("tools", func() (string, error) {
		n, err := c.tools.ensure(ctx)
		if n == 0 {
			return "all cached", err
		}
		return fmt.Sprintf("built %d groups", n), err
	})
	if err != nil {
		return err
	}

	old := exists(c.path("pki"))
	err = c.startNode(ctx)
	if err != nil && old && !u.Keep && ctx.Err() == nil && !errors.Is(err, errPortTaken) {
		fmt.Fprintf(os.Stderr, "the cluster of an earlier run cannot be repaired, building a new one: %v\n", err)
		if err := c.remove(ctx); err != nil {
			return err
		}
		err = c.startNode(ctx)
	}
	if err != nil {
		return err
	}
	if err := stage("storage class", func() (string, error) { return c.applyStorageClass(ctx) }); err != nil {
		return err
	}
	if err := stage("crossplane", func() (string, error) { return c.installCrossplane(ctx) }); err != nil {
		return err
	}
	fmt.Printf("%-24s %6.1fs  kubeconfig %s\n", "up", time.Since(start).Seconds(), c.kubeconfig())
	return nil
}

// startNode starts the control plane and the node, and waits until pods can run.
func (c *cluster) startNode(ctx context.Context) error {
	if err := c.prepareState(); err != nil {
		return err
	}
	if err := stage("network", func() (string, error) { return c.makeNetwork(ctx) }); err != nil {
		return err
	}
	if err := stage("certificates", c.makePKI); err != nil {
		return err
	}
	if err := c.writeConfigs(); err != nil {
		return err
	}
	if err := c.ensureAll(ctx, c.etcd(), c.registry(), c.containerd()); err != nil {
		return err
	}
	if err := c.ensureAll(ctx, c.apiServer()); err != nil {
		return err
	}
	if err := stage("pause image", func() (string, error) { return c.pushPause(ctx) }); err != nil {
		return err
	}
	err := c.ensureAll(ctx, c.controllerManager(), c.scheduler(), c.kubelet(), c.kubeProxy(), c.coreDNS(), c.provisioner())
	if err != nil {
		return err
	}
	if err := stage("node "+c.node.Name, func() (string, error) {
		if err := waitFor(ctx, 2*time.Minute, c.nodeReady); err != nil {
			return "", fmt.Errorf("cannot start node %s, see %s: %w", c.node.Name, c.logPath("kubelet"), err)
		}
		return "ready", nil
	}); err != nil {
		return err
	}
	return c.ensureAll(ctx, c.policies())
}

// processes returns all processes of a cluster, in the order in which they are started.
func (c *cluster) processes() []process {
	return []process{
		c.etcd(), c.registry(), c.containerd(), c.apiServer(), c.controllerManager(),
		c.scheduler(), c.kubelet(), c.kubeProxy(), c.coreDNS(), c.provisioner(), c.policies(),
	}
}

// ensureAll calls ensure for several processes at once, a stage each. The first failure cancels
// the others, because some of them wait for each other.
func (c *cluster) ensureAll(ctx context.Context, processes ...process) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, p := range processes {
		wg.Go(func() {
			if err := stage(p.name, func() (string, error) { return c.ensure(ctx, p) }); err != nil {
				cancel(err) // later errors are ignored
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// prepareState creates the state folder. After a restart of the machine it removes what
// containerd and the network plugins have stored about containers that no longer exist.
func (c *cluster) prepareState() error {
	for _, dir := range []string{"run", "logs", filepath.Join("registry", "blobs"), "volumes", "kubelet", "kubelet-plugins"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return fmt.Errorf("cannot make the state folder: %w", err)
		}
	}
	boot := c.path("boot")
	if b, err := os.ReadFile(boot); err == nil && string(b) != bootID() {
		c.forgetContainers()
		for _, dir := range []string{c.path("containerd", "state"), c.path("containerd", "runc"), c.path("cni", "data")} {
			if err := os.RemoveAll(dir); err != nil {
				return fmt.Errorf("cannot remove what the last boot left: %w", err)
			}
		}
	}
	return writeFile(boot, bootID(), 0o644)
}

// writeConfigs writes the configuration of every process that has one.
func (c *cluster) writeConfigs() error {
	plugins := cniPlugins()
	if plugins == "" {
		return errors.New("cannot find the network plugins: install containernetworking-plugins")
	}
	registries := c.path("config", "registries")
	files := map[string]string{
		c.path("config", "scheduler.yaml"):  renderScheduler(c.kubeconfigs()["scheduler"]),
		c.path("config", "kube-proxy.yaml"): renderKubeProxy(c.kubeconfigs()["proxy"]),
		c.path("config", "Corefile"):        renderCorefile(c.kubeconfig(), hasNameserver()),
		c.path("config", "kubelet.yaml"): renderKubelet(kubeletSettings{
			node: c.node, socket: c.containerdSocket(), ca: c.certPath("ca"),
			cert: c.certPath(kubeletCert(c.node)), key: c.keyPath(kubeletCert(c.node)),
			podLogs: c.path("logs", "pods"), plugins: c.path("kubelet-plugins"),
		}),
		c.path("config", "containerd.toml"): renderContainerd(containerdSettings{
			dir: c.path("containerd"), socket: c.containerdSocket(), sandboxImage: c.pauseImage(),
			cniPlugins: plugins, cniConfig: c.path("cni", "conf"), registries: registries,
		}),
	}
	for _, name := range registryNames() {
		files[filepath.Join(registries, name, "hosts.toml")] = renderRegistryHost(registryAddress)
	}
	for path, content := range files {
		if err := writeFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
