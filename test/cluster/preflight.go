package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// maxSocketPath is the kernel's limit for a socket's path. longestSocketPath, a socket of the
// kubelet, is the longest one below the state folder.
const (
	maxSocketPath     = 107
	longestSocketPath = "/kubelet/pod-resources/kubelet.sock.1234567890"
)

// preflight returns an error if a cluster cannot run on this machine, before anything is changed.
func (c *cluster) preflight() error {
	if err := needRoot(); err != nil {
		return fmt.Errorf("cannot run the test cluster: %w\n`make test` and `make render` work without it", err)
	}
	if len(c.state)+len(longestSocketPath) > maxSocketPath {
		return fmt.Errorf("cannot run the test cluster in %s: the path is too long for sockets below it, set XDG_STATE_HOME to a shorter one", c.state)
	}
	return nil
}

func needRoot() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("it needs Linux, this is %s", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("it needs root, to make containers and a network bridge")
	}
	if !exists("/proc/cgroups") {
		return errors.New("it needs control groups, and this kernel has no /proc/cgroups")
	}
	return nil
}
