package main

import "fmt"

// The rate limits of every client are set high: tests create many objects at once, and a
// throttled client makes the platform appear slow.
const (
	clientQPS   = 100
	clientBurst = 200
)

// fewerCollections lets the API server and etcd use memory in place of a collection of garbage each
// time that it doubles: what a request allocates is gone with it, and tests wait for processors, not
// for memory. Past the limit they collect as often as they have to.
var fewerCollections = []string{"GOGC=400", "GOMEMLIMIT=2GiB"}

func (c *cluster) apiServer() process {
	return process{
		name:  "kube-apiserver",
		ports: []string{hostAddress + ":6443"},
		argv: []string{
			c.tools.path("kube-apiserver"),
			"--etcd-servers=http://127.0.0.1:2379",
			// Host and pods both reach the bridge's address, and no other machine does.
			"--bind-address=" + hostAddress,
			"--advertise-address=" + hostAddress,
			"--secure-port=6443",
			"--service-cluster-ip-range=" + serviceCIDR,
			"--allow-privileged=true",
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--client-ca-file=" + c.certPath("ca"),
			"--tls-cert-file=" + c.certPath("apiserver"),
			"--tls-private-key-file=" + c.keyPath("apiserver"),
			"--kubelet-certificate-authority=" + c.certPath("ca"),
			"--kubelet-client-certificate=" + c.certPath("apiserver-kubelet-client"),
			"--kubelet-client-key=" + c.keyPath("apiserver-kubelet-client"),
			// InternalIP, so that the node's name need not be in /etc/hosts.
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc." + clusterDomain,
			"--service-account-key-file=" + c.path("pki", "service-accounts.pub"),
			"--service-account-signing-key-file=" + c.keyPath("service-accounts"),
		},
		env:     fewerCollections,
		inputs:  []string{c.certPath("ca"), c.certPath("apiserver")},
		healthy: answers(apiServer + "/readyz"),
	}
}

func (c *cluster) controllerManager() process {
	kubeconfig := c.kubeconfigs()["controller-manager"]
	return process{
		name:  "kube-controller-manager",
		ports: []string{"127.0.0.1:10257"},
		argv: []string{
			c.tools.path("kube-controller-manager"),
			"--kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + c.keyPath("service-accounts"),
			"--root-ca-file=" + c.certPath("ca"),
			"--cluster-signing-cert-file=" + c.certPath("ca"),
			"--cluster-signing-key-file=" + c.keyPath("ca"),
			"--service-cluster-ip-range=" + serviceCIDR,
			// By default, the controller manager watches a folder of the system for FlexVolume
			// plugins.
			"--flex-volume-plugin-dir=" + c.path("kubelet-plugins"),
			fmt.Sprintf("--kube-api-qps=%d", clientQPS),
			fmt.Sprintf("--kube-api-burst=%d", clientBurst),
		},
		inputs:  []string{kubeconfig},
		healthy: answers("https://127.0.0.1:10257/healthz"),
	}
}

func (c *cluster) scheduler() process {
	config := c.path("config", "scheduler.yaml")
	return process{
		name:    "kube-scheduler",
		ports:   []string{"127.0.0.1:10259"},
		argv:    []string{c.tools.path("kube-scheduler"), "--config=" + config, "--bind-address=127.0.0.1"},
		inputs:  []string{config, c.kubeconfigs()["scheduler"]},
		healthy: answers("https://127.0.0.1:10259/healthz"),
	}
}

func renderScheduler(kubeconfig string) string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: %d
  burst: %d
leaderElection:
  leaderElect: false
`, kubeconfig, clientQPS, clientBurst)
}
