package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// policies returns the process that enforces NetworkPolicies, which the bridge plugin does not:
// kube-router with its packet filter only, without its routes and services. It needs the Node
// object, so it starts once the node is ready. For about a second after a pod got its address,
// until kube-router has processed the pod, policies that select the pod have no effect, and no
// policy admits it as a peer.
func (c *cluster) policies() process {
	return process{
		name:  "kube-router",
		ports: []string{"127.0.0.1:20244"},
		argv: []string{
			c.tools.path("kube-router"), "--kubeconfig=" + c.kubeconfig(), "--hostname-override=" + c.node.Name,
			"--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--run-loadbalancer=false",
			"--service-cluster-ip-range=" + serviceCIDR, "--metrics-port=0",
		},
		inputs:  []string{c.kubeconfig()},
		healthy: answers("http://127.0.0.1:20244/healthz"),
	}
}

// policyChains are the prefixes of the names of kube-router's chains, and policySets those of its
// address sets.
var (
	policyChains = []string{"KUBE-ROUTER-", "KUBE-POD-FW-", "KUBE-NWPLCY-"}
	policySets   = []string{"KUBE-SRC-", "KUBE-DST-"}
)

// removePolicies removes kube-router's rules and address sets.
func removePolicies(ctx context.Context) error {
	saved, err := sh(ctx, "iptables-save", "--table", "filter")
	if err != nil {
		return fmt.Errorf("cannot list rules: %w", err)
	}
	if script := policyCleanup(saved); script != "" {
		if _, err := run(ctx, command{stdin: script, argv: []string{"iptables-restore", "--noflush", "--wait"}}); err != nil {
			return fmt.Errorf("cannot remove the rules of policies: %w", err)
		}
	}
	sets, err := sh(ctx, "ipset", "list", "-name")
	if err != nil {
		return nil //nolint:nilerr // Without ipset there are no sets.
	}
	var errs []error
	for set := range strings.FieldsSeq(sets) {
		if !hasAnyPrefix(set, policySets) {
			continue
		}
		if _, err := sh(ctx, "ipset", "destroy", set); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove the set %s: %w", set, err))
		}
	}
	return errors.Join(errs...)
}

// policyCleanup returns the iptables-restore script that removes kube-router's chains and the
// rules that jump to them from the saved filter table, or "" if there are none.
func policyCleanup(saved string) string {
	var rules, chains []string
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		if name, _, found := strings.Cut(strings.TrimPrefix(line, ":"), " "); found && strings.HasPrefix(line, ":") && hasAnyPrefix(name, policyChains) {
			chains = append(chains, name)
			continue
		}
		rule, ok := strings.CutPrefix(line, "-A ")
		// Rules within kube-router's chains are removed when those are flushed.
		if ok && hasAnyPrefix(jumpTarget(rule), policyChains) && !hasAnyPrefix(rule, policyChains) {
			rules = append(rules, "-D "+rule)
		}
	}
	if len(rules)+len(chains) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("*filter\n")
	for _, r := range rules {
		out.WriteString(r + "\n")
	}
	for _, verb := range []string{"-F ", "-X "} {
		for _, ch := range chains {
			out.WriteString(verb + ch + "\n")
		}
	}
	out.WriteString("COMMIT\n")
	return out.String()
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
