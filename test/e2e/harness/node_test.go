package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestOfContainer(t *testing.T) {
	const uid = "0f9cbd8a-3c3f-4a3c-9f6e-0d7f1f6f5a11"
	cases := map[string]struct {
		reason  string
		cgroups string
		want    bool
	}{
		"Cgroupfs": {"The kubelet's own names", "4:memory:/kubepods/burstable/pod" + uid + "/c0ffee\n0::/\n", true},
		"Systemd":  {"Names that systemd takes", "0::/kubepods.slice/kubepods-pod0f9cbd8a_3c3f_4a3c_9f6e_0d7f1f6f5a11.slice/cri-containerd-c0ffee.scope\n", true},
		"Sandbox":  {"The pod's own sandbox is none of its containers", "4:memory:/kubepods/burstable/pod" + uid + "/badcafe\n", false},
		"Other":    {"Another pod's container", "4:memory:/kubepods/burstable/pod1f9cbd8a-3c3f-4a3c-9f6e-0d7f1f6f5a11/c0ffee\n", false},
		"Apart":    {"Pod and container have to be of one group", "4:memory:/pod" + uid + "\n5:devices:/c0ffee\n", false},
		"Host":     {"Everything else on the machine", "0::/init.scope\n", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ofContainer(tc.cgroups, uid, []string{"c0ffee", "decaf"})); diff != "" {
				t.Errorf("\n%s\nofContainer(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestContainerIDs(t *testing.T) {
	pod := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"initContainerStatuses": []any{map[string]any{"name": "instance", "containerID": "containerd://aa"}},
		"containerStatuses": []any{
			map[string]any{"name": "postgresql", "containerID": "containerd://bb"},
			map[string]any{"name": "metrics"},
		},
	}}}
	cases := map[string]struct {
		reason string
		names  []string
		want   []string
	}{
		"All":      {"Without names all that run", nil, []string{"aa", "bb"}},
		"Named":    {"Only those named", []string{"postgresql"}, []string{"bb"}},
		"NotBegun": {"A container that has not started has no processes", []string{"metrics"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, containerIDs(pod, tc.names)); diff != "" {
				t.Errorf("\n%s\ncontainerIDs(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
