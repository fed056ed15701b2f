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

// ErrNotNode tells that a pod's processes are out of reach: they run on another
// machine, or are not ours to signal.
var ErrNotNode = errors.New("it needs to run as root on the node itself")

// Signal every process of a pod's containers, of those named or of all. Only
// processes whose control group is one of these containers are touched. It
// returns how many there were.
func Signal(pod *unstructured.Unstructured, sig syscall.Signal, containers ...string) (int, error) {
	ids := containerIDs(pod, containers)
	if pod == nil || len(ids) == 0 {
		return 0, errors.New("cannot signal a pod that has no containers")
	}
	seen := map[int]bool{}
	// A process may make another one while it is looked for.
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

// signal a process that is still the one that was found.
func signal(pid int, sig syscall.Signal, podUID string, ids []string) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		// It has ended, which is no error.
		return nil
	}
	defer p.Release() //nolint:errcheck // There is nothing to do about it.
	// From here on p is this process and no later one of the same number.
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

// containerIDs of a pod without the runtime's name, of all its containers or of
// those named.
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
		// What cannot be read is no container.
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

// ofContainer tells whether a process' control groups are those of a pod's
// container: the kubelet names them by both. With systemd as their driver it
// writes the pod's with underscores.
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
