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

// downCmd is the command down.
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

// remove stops all that up started and removes all that it created. A step that fails does not
// keep the later ones from running, so that as little as possible is left.
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

// stopProcesses kills the cluster's processes without a grace period: their data is removed
// anyway.
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

// killContainers kills the shims of the cluster's containerd with all their descendants, and the
// processes in the cluster's control groups, which shims that crashed have left behind.
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

// below returns the descendants of a process.
func below(pid int, parents map[int]int) []int {
	var out []int
	for child, parent := range parents {
		if parent == pid {
			out = append(append(out, child), below(child, parents)...)
		}
	}
	return out
}

// cgroups returns the control groups of the cluster's pods and containers. It finds them by the
// IDs that the kubelet and containerd keep in the state folder, because another kubelet on this
// machine would use the same parent folders.
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
			return nil // Groups are created and removed during the walk.
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

// removeCgroups removes the given groups, and then the folders above them if those are empty. The
// kernel refuses to remove a group that is in use.
func removeCgroups(ctx context.Context, groups []string) {
	slices.SortFunc(groups, func(a, b string) int { return len(b) - len(a) })
	for _, dir := range groups {
		// A process that was just killed may need a moment to leave its group.
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

// cgroupRoots returns the groups below which kubelets create those of pods, one for each
// hierarchy.
func cgroupRoots() []string {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/kubepods")
	return append(roots, "/sys/fs/cgroup/kubepods")
}

// removeMounts unmounts everything below the state folder: volumes of pods and file systems of
// containers.
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

// mountsBelow returns the mount points below dir, in the order in which they were mounted.
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

// removeNetwork removes the pods' network: the network namespaces with their interfaces, the
// bridge, and the rules of kube-proxy, of NetworkPolicies and of the network plugins.
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
			_, _ = sh(ctx, "ip", "link", "delete", filepath.Base(p)) // may already be removed with its namespace
		}
		if _, err := sh(ctx, "ip", "link", "delete", bridgeName); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove bridge %s: %w", bridgeName, err))
		}
	}
	return errors.Join(append(errs, c.removeRules(ctx))...)
}

// networkNamespaces returns the files of the named network namespaces that a container joins,
// from its OCI configuration.
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

// removeIfEmpty removes those of the folders that are empty.
func removeIfEmpty(dirs ...string) {
	for _, d := range dirs {
		_ = syscall.Rmdir(d)
	}
}

// restoreHost sets the kernel's settings back to their values before up.
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

// cniResults is the folder in which the library of the network plugins stores the result of each
// container's setup.
const cniResults = "/var/lib/cni/results"

// bundles returns the folders of the cluster's containers, which are named after the containers'
// IDs. Only files with these IDs are removed from folders that other container engines use too.
func (c *cluster) bundles() []string {
	dirs, _ := filepath.Glob(c.path("containerd", "state", "io.containerd.runtime.v2.task", "k8s.io", "*"))
	return dirs
}

// forgetContainers removes what is stored about the cluster's containers outside the state
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

// removeState removes the state folder, and what the kubelet and containerd store elsewhere.
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
	// After a lazy unmount a folder may stay busy for a moment.
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
