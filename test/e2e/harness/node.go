package harness

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrNotNode means that something on the node cannot be reached: it is on another machine, or this
// process does not run as root.
var ErrNotNode = errors.New("it needs to run as root on the node itself")

// Signal sends a signal to every process of a pod's containers, of the named ones or of all. It
// touches only processes whose control group is one of these containers, and returns their number.
func Signal(pod *unstructured.Unstructured, sig syscall.Signal, containers ...string) (int, error) {
	ids := containerIDs(pod, containers)
	if pod == nil || len(ids) == 0 {
		return 0, errors.New("cannot signal a pod that has no containers")
	}
	seen := map[int]bool{}
	// A process may start another one during the search.
	for {
		found := 0
		for _, pid := range processIDs() {
			if seen[pid] || !inContainer(pid, string(pod.GetUID()), ids) {
				continue
			}
			if err := signal(pid, sig, string(pod.GetUID()), ids); err != nil {
				return len(seen), err
			}
			seen[pid] = true
			found++
		}
		switch {
		case len(seen) == 0:
			return 0, ErrNotNode
		case found == 0:
			return len(seen), nil
		}
	}
}

// Program returns the process ID of a program, by its name, in a container of a pod. It fails with ErrNotNode where the pod's
// processes are not on this machine.
func Program(pod *unstructured.Unstructured, container, name string) (int, error) {
	ids := containerIDs(pod, []string{container})
	for _, pid := range processIDs() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && strings.TrimSpace(string(b)) == name && inContainer(pid, string(pod.GetUID()), ids) {
			return pid, nil
		}
	}
	return 0, ErrNotNode
}

// signal sends a signal to a process, if it still belongs to the container.
func signal(pid int, sig syscall.Signal, podUID string, ids []string) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		// The process has ended, which is no error.
		return nil
	}
	defer p.Release() //nolint:errcheck // The process has ended or was signalled, whatever the result.
	// From here on p is this process and not a later one of the same number.
	if !inContainer(pid, podUID, ids) {
		return nil
	}
	err = p.Signal(sig)
	if errors.Is(err, os.ErrPermission) {
		return ErrNotNode
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot signal process %d of pod %s: %w", pid, podUID, err)
	}
	return nil
}

// containerIDs returns the IDs of a pod's containers without the prefix of the runtime, of the
// named ones or of all.
func containerIDs(pod *unstructured.Unstructured, names []string) []string {
	if pod == nil {
		return nil
	}
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	var out []string
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		// A status that cannot be read counts as no container.
		statuses, _ := List(pod, "status", list)
		for _, s := range statuses {
			name, _ := s["name"].(string)
			url, _ := s["containerID"].(string)
			_, id, _ := strings.Cut(url, "://")
			if id != "" && (len(names) == 0 || wanted[name]) {
				out = append(out, id)
			}
		}
	}
	return out
}

func processIDs() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

func inContainer(pid int, podUID string, ids []string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && ofContainer(string(raw), podUID, ids)
}

// ofContainer reports whether control groups of a process are those of a pod's container. The
// kubelet puts the IDs of both into the name, that of the pod with underscores if its driver is
// systemd.
func ofContainer(cgroups, podUID string, ids []string) bool {
	for line := range strings.Lines(cgroups) {
		path := strings.TrimSpace(line)
		if !strings.Contains(path, "pod"+podUID) && !strings.Contains(path, "pod"+strings.ReplaceAll(podUID, "-", "_")) {
			continue
		}
		for _, id := range ids {
			if strings.Contains(path, id) {
				return true
			}
		}
	}
	return false
}
