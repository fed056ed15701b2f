package main

import (
	"fmt"
	"os"
	"strings"
)

func (c *cluster) coreDNS() process {
	config := c.path("config", "Corefile")
	return process{
		name:    "coredns",
		ports:   []string{hostAddress + ":53"},
		argv:    []string{c.tools.path("coredns"), "-conf", config},
		inputs:  []string{config, c.kubeconfig()},
		healthy: answers("http://127.0.0.1:8181/ready"),
	}
}

// renderCorefile returns the configuration of the cluster's name server. Names of the cluster are
// not cached and have a TTL of five seconds, because tests measure how fast a Service switches to
// other pods.
func renderCorefile(kubeconfig string, forward bool) string {
	upstream := ""
	if forward {
		upstream = "    forward . /etc/resolv.conf\n    cache 30 {\n        disable success " + clusterDomain + "\n        disable denial " + clusterDomain + "\n    }\n"
	}
	return fmt.Sprintf(`.:53 {
    bind %s
    errors
    ready 127.0.0.1:8181
    kubernetes %s in-addr.arpa ip6.arpa {
        kubeconfig %q
        pods insecure
        ttl 5
        fallthrough in-addr.arpa ip6.arpa
    }
%s    loadbalance
}
`, hostAddress, clusterDomain, kubeconfig, upstream)
}

// hasNameserver reports whether /etc/resolv.conf lists a name server, to which queries for other
// names can be forwarded.
func hasNameserver() bool {
	b, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			return true
		}
	}
	return false
}
