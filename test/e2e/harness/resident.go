package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Resident returns how many bytes of memory the processes of a program have resident in a pod.
func Resident(pod *unstructured.Unstructured, program string) (int64, error) {
	ids := containerIDs(pod, nil)
	var sum int64
	for _, pid := range processIDs() {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil || len(ids) == 0 || !inContainer(pid, string(pod.GetUID()), ids) {
			continue
		}
		name, kibibytes := residentOf(string(status))
		if name == program {
			sum += kibibytes << 10
		}
	}
	if sum == 0 {
		return 0, ErrNotNode
	}
	return sum, nil
}

// residentOf returns the name and the resident memory in KiB from the status of a process
// (https://man7.org/linux/man-pages/man5/proc_pid_status.5.html).
func residentOf(status string) (name string, kibibytes int64) {
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Name":
			name = value
		case "VmRSS":
			kibibytes, _ = strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
		}
	}
	return name, kibibytes
}
