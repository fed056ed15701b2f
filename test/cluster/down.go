package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// downCmd is the command that removes the cluster.
type downCmd struct{}

// Run removes the cluster.
func (*downCmd) Run(ctx context.Context, c *cluster) error {
	if err := needRoot(); err != nil {
		return fmt.Errorf("cannot remove a cluster: %w", err)
	}
	unlock, err := c.lockCluster(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.tools.find(); err != nil {
		return err
	}
	if !exists(c.state) {
		fmt.Println("there is no cluster")
		return nil
	}
	return c.remove(ctx)
}

// remove stops all that up started and removes all that it made. Every step
// goes as far as it can, so that one failure leaves as little as possible.
func (c *cluster) remove(ctx context.Context) error {
	var errs []error
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"stop processes", c.stopProcesses},
		{"kill containers", c.killContainers},
		{"remove mounts", c.removeMounts},
		{"remove network", c.removeNetwork},
		{"restore settings", c.restoreHost},
		{"remove state", c.removeState},
	} {
		errs = append(errs, stage(s.name, func() (string, error) { return "", s.do(ctx) }))
	}
	return errors.Join(errs...)
}

// stopProcesses ends them by force: nothing of what they would still save is
// kept.
func (c *cluster) stopProcesses(ctx context.Context) error {
	ps := c.processes()
	slices.Reverse(ps)
	var errs []error
	for _, p := range ps {
		var r record
		if readJSON(c.recordPath(p.name), &r) {
			r.stop(ctx, 0)
			if r.alive() {
				errs = append(errs, fmt.Errorf("cannot stop %s, process %d", p.name, r.PID))
			}
		}
		for _, pid := range c.strays(p.name, p.program()) {
			recordOf(pid).stop(ctx, 0)
		}
	}
	return errors.Join(errs...)
}

// killContainers ends the shims of our containerd with all that runs below
// them, and whatever has been left by shims that died.
func (c *cluster) killContainers(ctx context.Context) error {
	var doomed []record
	parents := parentPIDs()
	for _, pid := range pids() {
		argv := commandLine(pid)
		if len(argv) == 0 || !strings.HasPrefix(filepath.Base(argv[0]), "containerd-shim") || !slices.Contains(argv, c.containerdSocket()) {
			continue
		}
		doomed = append(doomed, recordOf(pid))
		for _, child := range below(pid, parents) {
			doomed = append(doomed, recordOf(child))
		}
	}
	groups := c.cgroups()
	for _, dir := range groups {
		for _, pid := range cgroupPIDs(dir) {
			doomed = append(doomed, recordOf(pid))
		}
	}
	for _, r := range doomed {
		if r.alive() {
			_ = syscall.Kill(r.PID, syscall.SIGKILL)
		}
	}
	for _, r := range doomed {
		r.stop(ctx, 0)
	}
	removeCgroups(ctx, groups)
	return nil
}

func parentPIDs() map[int]int {
	out := map[int]int{}
	for _, pid := range pids() {
		if f, ok := procStat(pid); ok {
			var parent int
			if _, err := fmt.Sscan(f[1], &parent); err == nil {
				out[pid] = parent
			}
		}
	}
	return out
}

// below are the descendants of a process.
func below(pid int, parents map[int]int) []int {
	var out []int
	for child, parent := range parents {
		if parent == pid {
			out = append(append(out, child), below(child, parents)...)
		}
	}
	return out
}

// cgroups are the control groups of our pods and containers, known by the ids
// that the kubelet and containerd keep in the state folder: another kubelet on
// this machine would use folders of the same name.
func (c *cluster) cgroups() []string {
	ours := map[string]bool{}
	pods, _ := filepath.Glob(c.path("kubelet", "pods", "*"))
	for _, d := range pods {
		ours["pod"+filepath.Base(d)] = true
	}
	for _, d := range c.bundles() {
		ours[filepath.Base(d)] = true
	}
	var out []string
	for _, root := range cgroupRoots() {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && ours[d.Name()] {
				out = append(out, path)
			}
			return nil // Groups come and go while we look.
		})
	}
	return out
}

func cgroupPIDs(dir string) []int {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var out []int
	for f := range strings.FieldsSeq(string(b)) {
		var pid int
		if _, err := fmt.Sscan(f, &pid); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// removeCgroups removes our groups, and the folders above them if those are
// empty then; the kernel refuses to remove any that is in use.
func removeCgroups(ctx context.Context, groups []string) {
	slices.SortFunc(groups, func(a, b string) int { return len(b) - len(a) })
	for _, dir := range groups {
		// A process that was just killed may take a moment to leave its group.
		_ = waitFor(ctx, time.Second, func(context.Context) error {
			if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
				return err
			}
			return nil
		})
	}
	for _, root := range cgroupRoots() {
		removeIfEmpty(filepath.Join(root, "burstable"), filepath.Join(root, "besteffort"), root)
	}
}

// cgroupRoots are the groups that kubelets keep their pods in, one a hierarchy.
func cgroupRoots() []string {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/kubepods")
	return append(roots, "/sys/fs/cgroup/kubepods")
}

// removeMounts unmounts all that is mounted below the state folder: volumes of
// pods, file systems of containers.
func (c *cluster) removeMounts(ctx context.Context) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("cannot list mounts: %w", err)
	}
	mounts := mountsBelow(string(b), c.state)
	slices.Reverse(mounts)
	var errs []error
	for _, m := range mounts {
		if _, err := sh(ctx, "umount", "--lazy", "--no-canonicalize", m); err != nil {
			errs = append(errs, fmt.Errorf("cannot unmount %s: %w", m, err))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow are the mount points below dir, in the order they were mounted.
func mountsBelow(mountinfo, dir string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var out []string
	for line := range strings.Lines(mountinfo) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			out = append(out, unescape.Replace(f[4]))
		}
	}
	return out
}

// removeNetwork removes the pods' network: their namespaces with the
// interfaces in them, the bridge, and the rules of kube-proxy and the plugins.
func (c *cluster) removeNetwork(ctx context.Context) error {
	for _, dir := range c.bundles() {
		b, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			continue
		}
		for _, ns := range networkNamespaces(b) {
			_, _ = sh(ctx, "umount", "--lazy", ns)
			_ = os.Remove(ns)
		}
	}
	removeIfEmpty("/var/run/netns")
	var errs []error
	if exists("/sys/class/net/" + bridgeName) {
		ports, _ := filepath.Glob("/sys/class/net/" + bridgeName + "/brif/*")
		for _, p := range ports {
			_, _ = sh(ctx, "ip", "link", "delete", filepath.Base(p)) // gone with its namespace, perhaps
		}
		if _, err := sh(ctx, "ip", "link", "delete", bridgeName); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove bridge %s: %w", bridgeName, err))
		}
	}
	return errors.Join(append(errs, c.removeRules(ctx))...)
}

// networkNamespaces are the files of the network namespaces that a container
// was made to join.
func networkNamespaces(config []byte) []string {
	var spec struct {
		Linux struct {
			Namespaces []struct {
				Type string `json:"type"`
				Path string `json:"path"`
			} `json:"namespaces"`
		} `json:"linux"`
	}
	if json.Unmarshal(config, &spec) != nil {
		return nil
	}
	var out []string
	for _, n := range spec.Linux.Namespaces {
		if n.Type == "network" && strings.HasPrefix(n.Path, "/var/run/netns/") {
			out = append(out, n.Path)
		}
	}
	return out
}

// removeIfEmpty removes folders, each unless something is in it.
func removeIfEmpty(dirs ...string) {
	for _, d := range dirs {
		_ = syscall.Rmdir(d)
	}
}

// restoreHost sets the kernel's settings back to what they were.
func (c *cluster) restoreHost(context.Context) error {
	var h host
	if !readJSON(c.hostPath(), &h) {
		return nil
	}
	var errs []error
	for name, value := range h.Sysctls {
		path := "/proc/sys/" + name
		b, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(b)) == value {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("cannot set the kernel's setting %s back to %s: %w", name, value, err))
		}
	}
	return errors.Join(errs...)
}

// cniResults is where the plugins' library keeps what it set up for a container.
const cniResults = "/var/lib/cni/results"

// bundles are the folders of our containers, named by their ids. Folders that
// we share with other container engines are searched for these ids only.
func (c *cluster) bundles() []string {
	dirs, _ := filepath.Glob(c.path("containerd", "state", "io.containerd.runtime.v2.task", "k8s.io", "*"))
	return dirs
}

// forgetContainers removes what is kept of our containers outside the state
// folder: the sockets of their shims and the results of the network plugins.
func (c *cluster) forgetContainers() {
	for _, dir := range c.bundles() {
		if b, err := os.ReadFile(filepath.Join(dir, "address")); err == nil {
			_ = os.Remove(strings.TrimPrefix(strings.TrimSpace(string(b)), "unix://"))
		}
		results, _ := filepath.Glob(filepath.Join(cniResults, "*-"+filepath.Base(dir)+"-*"))
		for _, r := range results {
			_ = os.Remove(r)
		}
	}
	removeIfEmpty("/run/containerd/s", "/run/containerd", cniResults, filepath.Dir(cniResults))
}

// removeState removes the state folder, and what the kubelet and containerd
// keep elsewhere.
func (c *cluster) removeState(context.Context) error {
	links, _ := filepath.Glob("/var/log/containers/*.log")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, c.state+"/") {
			_ = os.Remove(l)
		}
	}
	c.forgetContainers()
	var before host
	if readJSON(c.hostPath(), &before) && !before.Kubelet {
		_ = os.Remove(filepath.Join(kubeletHome, "device-plugins", "kubelet.sock"))
		removeIfEmpty(filepath.Join(kubeletHome, "device-plugins"), kubeletHome)
	}
	removeIfEmpty("/var/log/containers")
	// A lazy unmount may take a moment to let go of a folder.
	err := os.RemoveAll(c.state)
	for range 20 {
		if err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
		err = os.RemoveAll(c.state)
	}
	return fmt.Errorf("cannot remove %s: %w", c.state, err)
}
