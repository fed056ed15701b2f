package main

import "fmt"

// kubeletHome is the folder in which the kubelet opens its socket for device plugins, regardless
// of --root-dir.
const kubeletHome = "/var/lib/kubelet"

func (c *cluster) kubelet() process {
	config := c.path("config", "kubelet.yaml")
	kubeconfig := c.kubeconfigs()[kubeletCert(c.node)]
	return process{
		name:  "kubelet",
		ports: []string{c.node.Address + ":10250"},
		argv: []string{
			c.tools.path("kubelet"),
			"--config=" + config,
			"--kubeconfig=" + kubeconfig,
			"--root-dir=" + c.path("kubelet"),
			"--cert-dir=" + c.path("pki"),
			"--hostname-override=" + c.node.Name,
			"--node-ip=" + c.node.Address,
		},
		inputs:  []string{config, kubeconfig},
		healthy: answers("http://127.0.0.1:10248/healthz"),
	}
}

// kubeletSettings are the values that renderKubelet needs.
type kubeletSettings struct {
	node      node
	socket    string // of containerd
	ca        string
	cert, key string
	podLogs   string
	plugins   string
}

func renderKubelet(s kubeletSettings) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]q
containerRuntimeEndpoint: %[2]q
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: %[3]q
authorization:
  mode: Webhook
tlsCertFile: %[4]q
tlsPrivateKeyFile: %[5]q
podLogsDir: %[6]q
volumePluginDir: %[7]q
clusterDNS: [%[8]q]
clusterDomain: %[9]q

# The machines this runs on: control groups of the first version, no systemd,
# root without the right to lower scores.
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false

# A disk that is nearly full is the developer's business, not a reason to evict.
evictionHard:
  memory.available: 100Mi
  nodefs.available: 1%%
  nodefs.inodesFree: 1%%
  imagefs.available: 1%%
  imagefs.inodesFree: 1%%
imageGCHighThresholdPercent: 98
imageGCLowThresholdPercent: 95
containerLogMaxSize: 20Mi
containerLogMaxFiles: 3

# Quick to notice, and never throttled.
maxPods: 250
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: %[10]d
kubeAPIBurst: %[11]d
syncFrequency: 10s
fileCheckFrequency: 5s
nodeStatusUpdateFrequency: 4s
`, s.node.Address, "unix://"+s.socket, s.ca, s.cert, s.key, s.podLogs, s.plugins, hostAddress, clusterDomain, clientQPS, clientBurst)
}
