package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrNotEmbedded means that the API server cannot be stopped, because it is not the embedded
// cluster's.
var ErrNotEmbedded = errors.New("it needs the embedded cluster, whose API server it stops")

// APIServer is the process of the embedded cluster's API server.
type APIServer struct{ process *os.Process }

// FindAPIServer finds the API server of the embedded cluster (test/cluster), whose state is in the
// folder of its kubeconfig. The process id alone could be another process's by now, so the recorded
// start time and boot ID are compared too.
func FindAPIServer(kubeconfig string) (*APIServer, error) {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "run", "kube-apiserver.json"))
	if err != nil {
		return nil, ErrNotEmbedded
	}
	var r struct {
		PID     int    `json:"pid"`
		Started string `json:"started"`
		Boot    string `json:"boot"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("cannot decode the API server's record: %w", err)
	}
	p, err := os.FindProcess(r.PID)
	if err != nil {
		return nil, fmt.Errorf("cannot find the API server's process %d: %w", r.PID, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || strings.TrimSpace(string(boot)) != r.Boot || startOf(r.PID) != r.Started {
		return nil, fmt.Errorf("process %d is not the API server any more", r.PID)
	}
	return &APIServer{process: p}, nil
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

// Freeze stops the process: connections are accepted and nothing is answered.
func (a *APIServer) Freeze() error { return a.signal(syscall.SIGSTOP) }

// Thaw lets the process continue.
func (a *APIServer) Thaw() error { return a.signal(syscall.SIGCONT) }

// Kill ends the process at once. Nothing starts it again but the cluster's command up.
func (a *APIServer) Kill() error { return a.signal(syscall.SIGKILL) }

func (a *APIServer) signal(sig syscall.Signal) error {
	if err := a.process.Signal(sig); err != nil {
		return fmt.Errorf("cannot signal the API server: %w", err)
	}
	return nil
}

// FreezeAPI freezes the embedded cluster's API server for a time. It is thawed in any case, since everything else
// depends on it.
func FreezeAPI(ctx context.Context, length time.Duration) error {
	api, err := FindAPIServer(os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	defer func() { _ = api.Thaw() }()
	if err := api.Freeze(); err != nil {
		return err
	}
	if err := Until(ctx, time.Now().Add(length)); err != nil {
		return err
	}
	return api.Thaw()
}
