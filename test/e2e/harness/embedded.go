package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrNotEmbedded means that a process of the cluster cannot be reached, because the cluster is not the
// embedded one.
var ErrNotEmbedded = errors.New("it needs the embedded cluster, whose processes it stops or slows down")

// embedded returns the process id of a program of the embedded cluster (test/cluster), whose state is
// in the folder of its kubeconfig. The process id alone could be another process's by now, so the
// recorded start time and boot ID are compared too.
func embedded(kubeconfig, program string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "run", program+".json"))
	if err != nil {
		return 0, ErrNotEmbedded
	}
	var r struct {
		PID     int    `json:"pid"`
		Started string `json:"started"`
		Boot    string `json:"boot"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return 0, fmt.Errorf("cannot decode the record of %s: %w", program, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || strings.TrimSpace(string(boot)) != r.Boot || startOf(r.PID) != r.Started {
		return 0, fmt.Errorf("process %d is not %s any more", r.PID, program)
	}
	return r.PID, nil
}

// startOf returns when a process started, in ticks since boot, and "" if there is no such process.
func startOf(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name in brackets may contain spaces and brackets itself.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// Renice sets the priority of a program of the embedded cluster: 0 is the default and 19 the lowest
// (setpriority(2)). Threads and processes that it starts later have it too.
func Renice(kubeconfig, program string, priority int) error {
	pid, err := embedded(kubeconfig, program)
	if err != nil {
		return err
	}
	// Each thread has a priority of its own.
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("cannot list the threads of %s: %w", program, err)
	}
	for _, t := range tasks {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return fmt.Errorf("cannot list the threads of %s: %w", program, err)
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, priority); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("cannot set the priority of %s: %w", program, err)
		}
	}
	// The kernel may share the processors between sessions first, and then the priority of a thread counts in its
	// session alone (sched(7), autogroup). Each program of the cluster has a session of its own.
	err = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(priority)), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot set the priority of the session of %s: %w", program, err)
	}
	return nil
}
