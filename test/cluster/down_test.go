package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMountsBelow(t *testing.T) {
	const mountinfo = `21 1 0:20 / /proc rw - proc proc rw
30 1 254:0 /a /state/cluster/kubelet/pods/1/volumes/data rw - ext4 /dev/vda rw
31 1 0:40 / /state/cluster/containerd/with\040space rw - tmpfs tmpfs rw
32 1 0:41 / /state/cluster-other/mount rw - tmpfs tmpfs rw
`
	want := []string{"/state/cluster/kubelet/pods/1/volumes/data", "/state/cluster/containerd/with space"}
	if diff := cmp.Diff(want, mountsBelow(mountinfo, "/state/cluster")); diff != "" {
		t.Errorf("mountsBelow(...): -want, +got:\n%s", diff)
	}
}

func TestNetworkNamespaces(t *testing.T) {
	cases := map[string]struct {
		reason string
		config string
		want   []string
	}{
		"Pod": {
			reason: "Of the namespaces that a container joins only the network's is a file that stays.",
			config: `{"linux":{"namespaces":[{"type":"pid"},{"type":"ipc","path":"/proc/7/ns/ipc"},{"type":"network","path":"/var/run/netns/cni-1"}]}}`,
			want:   []string{"/var/run/netns/cni-1"},
		},
		"Host": {
			reason: "A pod on the host's network has no namespace of its own.",
			config: `{"linux":{"namespaces":[{"type":"pid"},{"type":"mount"}]}}`,
		},
		"Elsewhere": {
			reason: "Only the folder of named namespaces is ours to clear.",
			config: `{"linux":{"namespaces":[{"type":"network","path":"/proc/1/ns/net"}]}}`,
		},
		"Broken": {
			reason: "A half-written configuration names nothing.",
			config: `{"linux":`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, networkNamespaces([]byte(tc.config))); diff != "" {
				t.Errorf("\n%s\nnetworkNamespaces(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBelow(t *testing.T) {
	parents := map[int]int{2: 1, 3: 2, 4: 3, 5: 1, 6: 5}
	got := map[int]bool{}
	for _, pid := range below(2, parents) {
		got[pid] = true
	}
	if diff := cmp.Diff(map[int]bool{3: true, 4: true}, got); diff != "" {
		t.Errorf("below(...): -want, +got:\n%s", diff)
	}
}
