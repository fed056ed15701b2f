package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cutTable is the name of the rules that cut a network.
const cutTable = "storeplane_e2e_cut"

// Cut the network between a pod and an address, in both directions, by rules in the
// pod's own network namespace. What it returns removes them, also once the pod's
// processes have ended.
func Cut(pod *unstructured.Unstructured, address string) (heal func() error, err error) {
	ns, err := networkOf(pod)
	if err != nil {
		return nil, err
	}
	rules := fmt.Sprintf(`table inet %[1]s {
	chain in { type filter hook input priority -10; ip saddr %[2]s drop; }
	chain out { type filter hook output priority -10; ip daddr %[2]s drop; }
}
`, cutTable, address)
	if err := nft(ns, rules); err != nil {
		_ = ns.Close()
		return nil, err
	}
	return func() error {
		defer func() { _ = ns.Close() }()
		return nft(ns, "delete table inet "+cutTable+"\n")
	}, nil
}

// networkOf a pod is its network namespace, which lasts as long as it is open.
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
		// From here on it is open. The process may have ended before.
		if err == nil && inContainer(pid, string(pod.GetUID()), ids) {
			return ns, nil
		}
		if err == nil {
			_ = ns.Close()
		}
	}
	return nil, ErrNotNode
}

// nft in a network namespace.
func nft(ns *os.File, rules string) error {
	cmd := exec.Command("nsenter", "--net=/proc/self/fd/3", "nft", "--file", "-")
	cmd.ExtraFiles = []*os.File{ns}
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot change the rules of a network: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
