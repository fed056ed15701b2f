// Package plane starts a private Kubernetes control plane: controller-runtime's envtest with the
// programs of the embedded cluster, and optionally the controllers, as processes of this machine
// that listen on the loopback interface. There is no node, so no pod ever runs: a test that needs
// a ready pod writes its status. It is for tests and measurements that need a real API server but
// no cluster. With KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true the programs print their logs.
package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// ErrNoBinaries is returned if the programs are not on this machine. `make up` and `make e2e`
// build them.
var ErrNoBinaries = errors.New("the control plane's programs are not there: make up builds them")

// Plane is a running control plane.
type Plane struct {
	dir         string
	env         *envtest.Environment
	users       map[string]*envtest.AuthenticatedUser
	controllers *exec.Cmd
}

// The users of a plane.
const (
	// Admin is in the group system:masters, which has all rights.
	Admin = "admin"
	// Provider has only the rights that roles grant it.
	Provider = "provider"
)

// patience is the timeout for operations while the API server starts.
const patience = 2 * time.Minute

// Start starts a plane whose state is in dir, with the controllers of Kubernetes if controllers
// is set. It returns ErrNoBinaries if the programs are missing.
func Start(ctx context.Context, dir string, controllers bool) (*Plane, error) {
	apiserver, etcd := program("kubernetes", "kube-apiserver"), program("etcd", "etcd")
	if apiserver == "" || etcd == "" {
		return nil, ErrNoBinaries
	}
	p := &Plane{dir: dir, users: map[string]*envtest.AuthenticatedUser{}}
	// The programs are killed at once, because their state is not used again.
	p.env = &envtest.Environment{ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: time.Nanosecond}
	p.env.ControlPlane.Etcd = &envtest.Etcd{Path: p.path("etcd")}
	server := p.env.ControlPlane.GetAPIServer()
	server.Path = p.path("kube-apiserver")
	server.Configure().Set("endpoint-reconciler-type", "none")
	if err := errors.Join(p.tie(etcd), p.tie(apiserver)); err != nil {
		return nil, err
	}
	if err := p.start(ctx, controllers); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// program returns the path of a program that test/cluster has built, or "".
func program(tool, name string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	found, err := filepath.Glob(filepath.Join(cache, "storeplane", "tools", tool+"-*", name))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

func (p *Plane) path(name string) string { return filepath.Join(p.dir, name) }

// tie writes a script that runs a program such that it is killed when this process ends for any
// reason: envtest would leave it running if a test is interrupted or times out.
func (p *Plane) tie(program string) error {
	script := fmt.Appendf(nil, "#!/bin/sh\nexec setpriv --pdeathsig KILL %q \"$@\"\n", program)
	if err := os.WriteFile(p.path(filepath.Base(program)), script, 0o700); err != nil {
		return fmt.Errorf("cannot write a script: %w", err)
	}
	return nil
}

func (p *Plane) start(ctx context.Context, controllers bool) error {
	if _, err := p.env.Start(); err != nil {
		return fmt.Errorf("cannot start a control plane: %w", err)
	}
	for user, group := range map[string]string{Admin: "system:masters", Provider: "providers"} {
		var err error
		if p.users[user], err = p.env.AddUser(envtest.User{Name: user, Groups: []string{group}}, &rest.Config{QPS: -1}); err != nil {
			return fmt.Errorf("cannot add user %s: %w", user, err)
		}
	}
	manager := program("kubernetes", "kube-controller-manager")
	if !controllers || manager == "" {
		return nil
	}
	kubeconfig, err := p.Kubeconfig(Admin)
	if err != nil {
		return err
	}
	p.controllers = exec.CommandContext(context.WithoutCancel(ctx), manager, "--kubeconfig="+kubeconfig, "--secure-port=0",
		"--leader-elect=false", "--kube-api-qps=200", "--kube-api-burst=400",
		"--controllers=deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,cronjob-controller,job-controller,namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller")
	p.controllers.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.controllers.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", manager, err)
	}
	return nil
}

// Config returns a configuration for clients of a user, without rate limits.
func (p *Plane) Config(user string) *rest.Config { return rest.CopyConfig(p.users[user].Config()) }

// Kubeconfig writes a kubeconfig of a user and returns its path.
func (p *Plane) Kubeconfig(user string) (string, error) {
	content, err := p.users[user].KubeConfig()
	if err != nil {
		return "", fmt.Errorf("cannot make the kubeconfig of user %s: %w", user, err)
	}
	path := p.path(user + ".kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("cannot write the kubeconfig of user %s: %w", user, err)
	}
	return path, nil
}

// Stop stops the plane.
func (p *Plane) Stop() {
	if p.controllers != nil {
		_ = p.controllers.Process.Kill()
		_ = p.controllers.Wait()
	}
	// The error is that the programs did not stop by themselves.
	_ = p.env.Stop()
}
