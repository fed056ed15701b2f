package main

import "fmt"

func (c *cluster) kubeProxy() process {
	config := c.path("config", "kube-proxy.yaml")
	return process{
		name:    "kube-proxy",
		ports:   []string{"127.0.0.1:10256"},
		argv:    []string{c.tools.path("kube-proxy"), "--config=" + config, "--hostname-override=" + c.node.Name},
		inputs:  []string{config, c.kubeconfigs()["proxy"]},
		healthy: answers("http://127.0.0.1:10256/healthz"),
	}
}

func renderKubeProxy(kubeconfig string) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: %[1]q
clientConnection:
  kubeconfig: %[2]q
  qps: %[3]d
  burst: %[4]d
bindAddress: 127.0.0.1
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
oomScoreAdj: 0
# The machine's own limits on connections stay as they are.
conntrack:
  maxPerCore: 0
  min: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`, podCIDR, kubeconfig, clientQPS, clientBurst)
}
