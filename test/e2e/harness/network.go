package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cutTable is the name of the nftables table with the rules of Cut.
const cutTable = "storeplane_e2e_cut"

// Cut blocks all traffic between a pod and an address, in both directions, by rules in the pod's
// own network namespace. The returned function removes them, even after the pod's processes have
// ended.
func Cut(ctx context.Context, pod *unstructured.Unstructured, address string) (heal func(context.Context) error, err error) {
	ns, err := networkOf(pod)
	if err != nil {
		return nil, err
	}
	rules := fmt.Sprintf(`table inet %[1]s {
	chain in { type filter hook input priority -10; ip saddr %[2]s drop; }
	chain out { type filter hook output priority -10; ip daddr %[2]s drop; }
}
`, cutTable, address)
	if err := nft(ctx, ns, rules); err != nil {
		_ = ns.Close()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer func() { _ = ns.Close() }()
		return nft(ctx, ns, "delete table inet "+cutTable+"\n")
	}, nil
}

// networkOf opens the network namespace of a pod, which exists as long as the file is open.
func networkOf(pod *unstructured.Unstructured) (*os.File, error) {
	ids := containerIDs(pod, nil)
	if len(ids) == 0 {
		return nil, errors.New("cannot find the network of a pod that has no containers")
	}
	for _, pid := range processIDs() {
		if !inContainer(pid, string(pod.GetUID()), ids) {
			continue
		}
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		// The process may have ended, and its number been reused, before the file was open: check
		// again.
		if err == nil && inContainer(pid, string(pod.GetUID()), ids) {
			return ns, nil
		}
		if err == nil {
			_ = ns.Close()
		}
	}
	return nil, ErrNotNode
}

// nft applies nftables rules in a network namespace.
func nft(ctx context.Context, ns *os.File, rules string) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--net=/proc/self/fd/3", "nft", "--file", "-")
	cmd.ExtraFiles = []*os.File{ns}
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot change the rules of a network: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
