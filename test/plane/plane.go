// Package plane starts a Kubernetes control plane of its own: etcd and an API
// server, and the controllers if they are wanted, as processes of this machine on
// ports of the loopback interface. There is no node, so no pod ever runs: who
// needs one to be ready writes that into its status. It is there for tests and
// measurements that need the API server's own answers and not a cluster.
package plane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrNoBinaries says that the programs are not on this machine. `make up` and
// `make e2e` build them.
var ErrNoBinaries = errors.New("the control plane's programs are not there: make up builds them")

// Plane is a running control plane.
type Plane struct {
	dir      string
	port     int
	tokens   map[string]string
	programs []*exec.Cmd
}

// Users of a plane.
const (
	// Admin may do everything.
	Admin = "admin"
	// Provider may do what its roles let it.
	Provider = "provider"
)

// Start a plane whose state is in dir, with the controllers if they are wanted.
func Start(ctx context.Context, dir string, controllers bool) (*Plane, error) {
	apiserver, etcd := program("kubernetes", "kube-apiserver"), program("etcd", "etcd")
	if apiserver == "" || etcd == "" {
		return nil, ErrNoBinaries
	}
	p := &Plane{dir: dir, tokens: map[string]string{}}
	if err := p.start(ctx, apiserver, etcd, controllers); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// program of a tool that test/cluster has built.
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

func (p *Plane) start(ctx context.Context, apiserver, etcd string, controllers bool) error {
	ports, err := freePorts(4)
	if err != nil {
		return err
	}
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	p.port = ports[2]
	if err := p.credentials(); err != nil {
		return err
	}
	if err := p.run(ctx, etcd, "--data-dir="+p.path("etcd"), "--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync", "--log-level=error"); err != nil {
		return err
	}
	if err := p.run(ctx, apiserver, "--etcd-servers="+client, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.port),
		"--cert-dir="+p.path("certs"), "--token-auth-file="+p.path("tokens.csv"), "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.200.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+p.path("sa.key"), "--service-account-signing-key-file="+p.path("sa.key"),
		"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"); err != nil {
		return err
	}
	if err := p.ready(ctx); err != nil {
		return err
	}
	manager := program("kubernetes", "kube-controller-manager")
	if !controllers || manager == "" {
		return nil
	}
	kubeconfig, err := p.Kubeconfig(Admin)
	if err != nil {
		return err
	}
	return p.run(ctx, manager, "--kubeconfig="+kubeconfig, fmt.Sprintf("--secure-port=%d", ports[3]), "--bind-address=127.0.0.1",
		"--leader-elect=false", "--cert-dir="+p.path("manager"), "--kube-api-qps=200", "--kube-api-burst=400",
		"--controllers=deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,cronjob-controller,job-controller,namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller")
}

func (p *Plane) path(name string) string { return filepath.Join(p.dir, name) }

// credentials of the users and of service accounts.
func (p *Plane) credentials() error {
	var lines []string
	for user, group := range map[string]string{Admin: "system:masters", Provider: "providers"} {
		b := make([]byte, 16)
		_, _ = rand.Read(b) // It never fails.
		p.tokens[user] = hex.EncodeToString(b)
		lines = append(lines, strings.Join([]string{p.tokens[user], user, user, group}, ","))
	}
	if err := os.WriteFile(p.path("tokens.csv"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot write the tokens: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make the key of service accounts: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("cannot encode the key of service accounts: %w", err)
	}
	if err := os.WriteFile(p.path("sa.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("cannot write the key of service accounts: %w", err)
	}
	return nil
}

// run a program until Stop. It goes with this process, however that ends.
func (p *Plane) run(ctx context.Context, path string, args ...string) error {
	log, err := os.Create(p.path(filepath.Base(path) + ".log"))
	if err != nil {
		return fmt.Errorf("cannot make a log: %w", err)
	}
	defer func() { _ = log.Close() }()
	c := exec.CommandContext(context.WithoutCancel(ctx), path, args...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", path, err)
	}
	p.programs = append(p.programs, c)
	return nil
}

// patience with an API server that starts.
const patience = 2 * time.Minute

// ready waits until the API server is.
func (p *Plane) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.Config(Admin))
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/readyz", nil)
		if err != nil {
			return fmt.Errorf("cannot ask the API server: %w", err)
		}
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for the API server, whose log is in %s: %w", p.dir, ctx.Err())
		case <-tick.C:
		}
	}
}

func (p *Plane) url() string { return fmt.Sprintf("https://127.0.0.1:%d", p.port) }

// Config of a client of a user, which is not throttled.
func (p *Plane) Config(user string) *rest.Config {
	return &rest.Config{Host: p.url(), BearerToken: p.tokens[user], TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
}

// Kubeconfig of a user: the path of a file.
func (p *Plane) Kubeconfig(user string) (string, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters["plane"] = &clientcmdapi.Cluster{Server: p.url(), InsecureSkipTLSVerify: true}
	c.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: p.tokens[user]}
	c.Contexts[user] = &clientcmdapi.Context{Cluster: "plane", AuthInfo: user}
	c.CurrentContext = user
	path := p.path(user + ".kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return "", fmt.Errorf("cannot write %s: %w", path, err)
	}
	return path, nil
}

// Stop the plane.
func (p *Plane) Stop() {
	for _, c := range slices.Backward(p.programs) {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// freePorts of the loopback interface.
func freePorts(n int) ([]int, error) {
	out := make([]int, 0, n)
	for range n {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cannot find a free port: %w", err)
		}
		defer func() { _ = l.Close() }()
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("cannot read the port of %s", l.Addr())
		}
		out = append(out, a.Port)
	}
	return out, nil
}
