package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// removeRules removes the packet filter rules of kube-proxy, of NetworkPolicies, of the network
// plugins and of allowForwarding, and the tables that were created for them.
func (c *cluster) removeRules(ctx context.Context) error {
	var errs []error
	tables := nftTables(ctx)
	for _, t := range []string{"ip kube-proxy", "ip6 kube-proxy"} {
		if slices.Contains(tables, t) {
			errs = append(errs, deleteTable(ctx, t))
		}
	}
	if slices.Contains(tables, "ip filter") {
		errs = append(errs, removePolicies(ctx))
		for _, rule := range forwardingRules("-D") {
			_, _ = sh(ctx, rule...) // the rule exists only if allowForwarding needed it
		}
	}
	if slices.Contains(tables, "ip nat") {
		saved, err := sh(ctx, "iptables-save", "--table", "nat")
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("cannot list rules: %w", err))...)
		}
		if script := pluginCleanup(saved, cniNetwork); script != "" {
			if _, err := run(ctx, command{stdin: script, argv: []string{"iptables-restore", "--noflush", "--wait"}}); err != nil {
				errs = append(errs, fmt.Errorf("cannot remove the network plugins' rules: %w", err))
			}
		}
	}
	var before host
	if !readJSON(c.hostPath(), &before) {
		return errors.Join(errs...)
	}
	for _, t := range nftTables(ctx) {
		if !slices.Contains([]string{"ip nat", "ip filter", "ip mangle", "ip6 nat", "ip6 filter", "ip6 mangle"}, t) || slices.Contains(before.Tables, t) {
			continue
		}
		content, err := sh(ctx, append([]string{"nft", "list", "table"}, strings.Fields(t)...)...)
		if err == nil && !hasRules(content) {
			errs = append(errs, deleteTable(ctx, t))
		}
	}
	return errors.Join(errs...)
}

func deleteTable(ctx context.Context, table string) error {
	if _, err := sh(ctx, append([]string{"nft", "delete", "table"}, strings.Fields(table)...)...); err != nil {
		return fmt.Errorf("cannot remove table %s: %w", table, err)
	}
	return nil
}

// hasRules reports whether a table, as listed by nft, contains anything but empty chains.
func hasRules(table string) bool {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) == 0 || slices.Contains([]string{"table", "chain", "type", "}", "#"}, f[0]) {
			continue
		}
		return true
	}
	return false
}

// pluginCleanup returns the iptables-restore script that removes what the bridge and portmap
// plugins added for a network from the saved nat table, or "" if there is nothing. The plugins
// mark the rules that jump to a pod's own chains with the network's name. The chains that
// networks share are removed if no other network uses them.
func pluginCleanup(saved, network string) string {
	mark := `name: \"` + network + `\"`
	var rules, chains, shared []string
	left := false // whether another network uses the shared chains
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		rule, ok := strings.CutPrefix(line, "-A ")
		if !ok {
			if name, _, found := strings.Cut(strings.TrimPrefix(line, ":"), " "); found && strings.HasPrefix(line, ":CNI-HOSTPORT-") {
				shared = append(shared, name)
			}
			continue
		}
		chain, _, _ := strings.Cut(rule, " ")
		target := jumpTarget(rule)
		switch {
		case strings.Contains(rule, mark):
			// Rules within a pod's own chain are removed when that is flushed.
			if !isPodChain(chain) {
				rules = append(rules, "-D "+rule)
			}
			if isPodChain(target) && !slices.Contains(chains, target) {
				chains = append(chains, target)
			}
		case chain == "CNI-HOSTPORT-DNAT":
			left = true
		}
	}
	if !left {
		for line := range strings.Lines(saved) {
			rule, ok := strings.CutPrefix(strings.TrimSpace(line), "-A ")
			if ok && strings.HasPrefix(jumpTarget(rule), "CNI-HOSTPORT-") && !strings.HasPrefix(rule, "CNI-") {
				rules = append(rules, "-D "+rule)
			}
		}
		chains = append(chains, shared...)
	}
	if len(rules)+len(chains) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("*nat\n")
	for _, r := range rules {
		out.WriteString(r + "\n")
	}
	for _, ch := range chains {
		out.WriteString("-F " + ch + "\n")
	}
	for _, ch := range chains {
		out.WriteString("-X " + ch + "\n")
	}
	out.WriteString("COMMIT\n")
	return out.String()
}

func isPodChain(name string) bool {
	return strings.HasPrefix(name, "CNI-") && !strings.HasPrefix(name, "CNI-HOSTPORT-")
}

func jumpTarget(rule string) string {
	f := strings.Fields(rule)
	if i := slices.Index(f, "-j"); i >= 0 && i+1 < len(f) {
		return f[i+1]
	}
	return ""
}
