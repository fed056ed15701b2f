package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestConfigsAreYAML: the rendered configurations can be parsed, also with paths that need
// quoting.
func TestConfigsAreYAML(t *testing.T) {
	n := node{Name: "storeplane-1", Address: "10.88.0.1", PodCIDR: "10.88.0.0/16"}
	cases := map[string]struct {
		config string
		kind   string
	}{
		"Kubelet":    {renderKubelet(kubeletSettings{node: n, socket: "/a b/c: d.sock"}), "KubeletConfiguration"},
		"KubeProxy":  {renderKubeProxy("/a b/c: d"), "KubeProxyConfiguration"},
		"Scheduler":  {renderScheduler("/a b/c: d"), "KubeSchedulerConfiguration"},
		"Kubeconfig": {renderKubeconfig("admin", "https://10.88.0.1:6443", "Y2E=", "Y2VydA==", "a2V5"), "Config"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got struct {
				Kind string `json:"kind"`
			}
			if err := yaml.Unmarshal([]byte(tc.config), &got); err != nil {
				t.Fatalf("cannot read the configuration: %v\n%s", err, tc.config)
			}
			if diff := cmp.Diff(tc.kind, got.Kind); diff != "" {
				t.Errorf("kind: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestRenderCNI(t *testing.T) {
	type network struct {
		Name    string `json:"name"`
		Plugins []struct {
			Type string `json:"type"`
			MTU  *int   `json:"mtu"`
		} `json:"plugins"`
	}
	small := 1400
	cases := map[string]struct {
		reason string
		mtu    int
		want   *int
	}{
		"Known":   {reason: "Pods must not send larger packets than the way out takes.", mtu: small, want: &small},
		"Unknown": {reason: "Without a way out the kernel's default does."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			conf, err := renderCNI(node{PodCIDR: podCIDR, Address: hostAddress}, "/data", tc.mtu)
			if err != nil {
				t.Fatal(err)
			}
			var got network
			if err := json.Unmarshal([]byte(conf), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(cniNetwork, got.Name); diff != "" {
				t.Errorf("name: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got.Plugins[0].MTU); diff != "" {
				t.Errorf("\n%s\nmtu: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
