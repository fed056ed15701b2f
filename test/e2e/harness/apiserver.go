package harness

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// APIServer is the process of the embedded cluster's API server.
type APIServer struct{ process *os.Process }

// FindAPIServer finds the API server of the embedded cluster (test/cluster), whose state is in the
// folder of its kubeconfig.
func FindAPIServer(kubeconfig string) (*APIServer, error) {
	pid, err := embedded(kubeconfig, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("cannot find process %d of kube-apiserver: %w", pid, err)
	}
	return &APIServer{process: p}, nil
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

// FreezeAPI freezes the embedded cluster's API server for a time, and waits until the ledger is reached through it again. It is
// thawed in any case, since everything else depends on it.
func (l *Ledger) FreezeAPI(ctx context.Context, length, within time.Duration) error {
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
	if err := api.Thaw(); err != nil {
		return err
	}
	return Await(ctx, within, "the API server to answer", func(ctx context.Context) (bool, error) {
		_, err := l.Mark(ctx)
		return err == nil, err
	})
}
