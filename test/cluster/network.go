package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// cniNetwork is the name of the pods' network, with which the network plugins mark their rules.
const cniNetwork = "storeplane"

// sysctls are the kernel settings that a node needs. The kubelet sets those without a value
// itself; they are listed so that down can set them back.
var sysctls = map[string]string{
	"net/ipv4/ip_forward":                "1",
	"net/bridge/bridge-nf-call-iptables": "1", // for services whose pods are on the client's bridge
	"fs/inotify/max_user_instances":      "8192",
	"fs/inotify/max_user_watches":        "524288",
	"vm/overcommit_memory":               "",
	"vm/panic_on_oom":                    "",
	"kernel/panic":                       "",
	"kernel/panic_on_oops":               "",
	"kernel/keys/root_maxkeys":           "",
	"kernel/keys/root_maxbytes":          "",
}

// host is the state of the machine before up, which down restores.
type host struct {
	Sysctls map[string]string `json:"sysctls"`
	Tables  []string          `json:"tables"`  // of nftables
	Kubelet bool              `json:"kubelet"` // whether kubeletHome existed
}

func (c *cluster) hostPath() string { return c.path("host.json") }

// makeNetwork creates the bridge, sets the kernel settings and writes the configuration of the
// network plugins. It returns a note for the user.
func (c *cluster) makeNetwork(ctx context.Context) (string, error) {
	if !exists(c.hostPath()) {
		if err := writeJSON(c.hostPath(), host{Sysctls: readSysctls(), Tables: nftTables(ctx), Kubelet: exists(kubeletHome)}); err != nil {
			return "", err
		}
	}
	if !exists("/proc/sys/net/bridge") {
		_, _ = sh(ctx, "modprobe", "br_netfilter") // if it is not built in either, setSysctl fails below
	}
	for name, want := range sysctls {
		if err := setSysctl(name, want); err != nil {
			return "", err
		}
	}
	note := "bridge there"
	if !exists("/sys/class/net/" + bridgeName) {
		note = "made bridge"
		if _, err := sh(ctx, "ip", "link", "add", bridgeName, "type", "bridge"); err != nil {
			return "", fmt.Errorf("cannot make bridge %s: %w", bridgeName, err)
		}
	}
	if _, err := sh(ctx, "ip", "address", "replace", hostAddress+"/16", "dev", bridgeName); err != nil {
		return "", fmt.Errorf("cannot give bridge %s its address: %w", bridgeName, err)
	}
	if _, err := sh(ctx, "ip", "link", "set", bridgeName, "up"); err != nil {
		return "", fmt.Errorf("cannot start bridge %s: %w", bridgeName, err)
	}
	conflist, err := renderCNI(c.node, c.path("cni", "data"), mtu(ctx))
	if err != nil {
		return "", err
	}
	if err := c.allowForwarding(ctx); err != nil {
		return "", err
	}
	return note, writeFile(c.path("cni", "conf", "10-storeplane.conflist"), conflist, 0o644)
}

func readSysctls() map[string]string {
	out := map[string]string{}
	for name := range sysctls {
		if b, err := os.ReadFile("/proc/sys/" + name); err == nil {
			out[name] = strings.TrimSpace(string(b))
		}
	}
	return out
}

// setSysctl sets a kernel setting, unless its value is already at least want.
func setSysctl(name, want string) error {
	if want == "" {
		return nil
	}
	path := "/proc/sys/" + name
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the kernel's setting %s, its module may be missing: %w", name, err)
	}
	have, err := strconv.Atoi(strings.TrimSpace(string(b)))
	least, _ := strconv.Atoi(want)
	if err == nil && have >= least {
		return nil
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		return fmt.Errorf("cannot set the kernel's setting %s to %s: %w", name, want, err)
	}
	return nil
}

// mtu returns the packet size of the interface of the default route, or 0 if there is none. Pods
// must not send larger packets.
func mtu(ctx context.Context) int {
	out, err := sh(ctx, "ip", "-json", "route", "show", "default")
	if err != nil {
		return 0
	}
	var routes []struct {
		Dev string `json:"dev"`
	}
	if json.Unmarshal([]byte(out), &routes) != nil || len(routes) == 0 {
		return 0
	}
	b, err := os.ReadFile("/sys/class/net/" + routes[0].Dev + "/mtu")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// renderCNI returns the configuration of the pods' network: a bridge with the host's address, and
// host ports for pods that request them.
func renderCNI(n node, dataDir string, mtu int) (string, error) {
	bridge := map[string]any{
		"type":        "bridge",
		"bridge":      bridgeName,
		"isGateway":   true,
		"ipMasq":      true,
		"hairpinMode": true, // lets a pod reach itself through its service
		"ipam": map[string]any{
			"type":    "host-local",
			"dataDir": dataDir,
			"ranges":  [][]map[string]any{{{"subnet": n.PodCIDR, "gateway": n.Address}}},
			"routes":  []map[string]any{{"dst": "0.0.0.0/0"}},
		},
	}
	if mtu > 0 {
		bridge["mtu"] = mtu
	}
	b, err := json.MarshalIndent(map[string]any{
		"cniVersion": "0.4.0",
		"name":       cniNetwork,
		"plugins": []map[string]any{
			bridge,
			{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("cannot encode the network's configuration: %w", err)
	}
	return string(b) + "\n", nil
}

// forwardingRules returns the iptables commands that add (-I), check (-C) or delete (-D) the
// rules which let the pods' packets through a firewall that drops forwarded packets, as a
// container engine on the same machine sets it up.
func forwardingRules(verb string) [][]string {
	comment := []string{"-m", "comment", "--comment", cniNetwork, "-j", "ACCEPT"}
	return [][]string{
		append([]string{"iptables", "--wait", verb, "FORWARD", "-i", bridgeName}, comment...),
		append([]string{"iptables", "--wait", verb, "FORWARD", "-o", bridgeName}, comment...),
	}
}

func (c *cluster) allowForwarding(ctx context.Context) error {
	out, err := sh(ctx, "iptables", "--wait", "-S", "FORWARD")
	if err != nil || !strings.Contains(out, "-P FORWARD DROP") {
		return nil //nolint:nilerr // Without such a table no packet is dropped.
	}
	checks := forwardingRules("-C")
	for i, insert := range forwardingRules("-I") {
		if _, err := sh(ctx, checks[i]...); err == nil {
			continue
		}
		if _, err := sh(ctx, insert...); err != nil {
			return fmt.Errorf("cannot let the pods' packets through the firewall: %w", err)
		}
	}
	return nil
}

// nftTables returns the existing tables of nftables, as "family name".
func nftTables(ctx context.Context) []string {
	out, err := sh(ctx, "nft", "list", "tables")
	if err != nil {
		return nil
	}
	var tables []string
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "table "); ok {
			tables = append(tables, name)
		}
	}
	return tables
}
