package main

import (
	"fmt"
	"os/exec"
)

func (c *cluster) containerdSocket() string { return c.path("containerd", "containerd.sock") }

func (c *cluster) containerd() process {
	program, err := exec.LookPath("containerd")
	if err != nil {
		program = "/usr/bin/containerd"
	}
	config := c.path("config", "containerd.toml")
	return process{
		name:    "containerd",
		argv:    []string{program, "--config", config},
		inputs:  []string{config},
		healthy: listens(c.containerdSocket()),
	}
}

// containerdSettings are the values that renderContainerd needs.
type containerdSettings struct {
	dir          string // for all files that containerd writes
	socket       string
	sandboxImage string
	cniPlugins   string
	cniConfig    string
	registries   string // folder with a hosts.toml for each registry
}

func renderContainerd(s containerdSettings) string {
	return fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q
oom_score = 0
# Drivers for file systems that are not there only fill the log.
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.opt"]

[grpc]
  address = %[3]q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[4]q
  # Root may lack CAP_SYS_RESOURCE, and a score below its own is then refused.
  restrict_oom_score_adj = true
  max_concurrent_downloads = 10

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %[5]q
    conf_dir = %[6]q

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %[7]q

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = %[8]q
`, s.dir+"/root", s.dir+"/state", s.socket, s.sandboxImage, s.cniPlugins, s.cniConfig, s.registries, s.dir+"/runc")
}

// renderRegistryHost returns a hosts.toml by which containerd reaches a registry over plain HTTP.
func renderRegistryHost(address string) string {
	return fmt.Sprintf(`server = "http://%[1]s"

[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`, address)
}
