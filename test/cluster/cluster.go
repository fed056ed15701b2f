package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// rootModule is how the go.mod at the root of this repository begins.
const rootModule = "module github.com/storeplane/storeplane\n"

// The addresses of the cluster are fixed: every process, certificate and image name depends on
// them, and only one cluster runs on a machine.
const (
	podCIDR         = "10.88.0.0/16"
	bridgeName      = "cni0"
	hostAddress     = "10.88.0.1" // of the bridge, at which pods reach the host
	serviceCIDR     = "10.96.0.0/16"
	serviceAddress  = "10.96.0.1" // of the API server
	clusterDomain   = "cluster.local"
	registryAddress = hostAddress + ":5000"
	registry        = registryAddress + "/storeplane"
	apiServer       = "https://" + hostAddress + ":6443"
)

// node holds what differs between the nodes of a cluster.
type node struct {
	Name    string
	Address string
	PodCIDR string
}

// cluster is one test cluster: the folders in which it is kept, its node and its tools.
type cluster struct {
	root  string // of the repository
	cache string // kept by down
	state string // removed by down
	node  node
	tools *toolbox
}

func newCluster() (*cluster, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cache folder, set HOME or XDG_CACHE_HOME: %w", err)
	}
	state, err := stateHome()
	if err != nil {
		return nil, err
	}
	c := &cluster{
		root:  root,
		cache: filepath.Join(cache, "storeplane"),
		state: filepath.Join(state, "storeplane", "cluster"),
		node:  node{Name: "storeplane-1", Address: hostAddress, PodCIDR: podCIDR},
	}
	c.tools = &toolbox{source: filepath.Join(root, "test", "cluster"), cache: filepath.Join(c.cache, "tools")}
	return c, nil
}

// source returns the path of a file in test/cluster.
func (c *cluster) source(elem ...string) string {
	return filepath.Join(append([]string{c.root, "test", "cluster"}, elem...)...)
}

// path returns the path of a file in the state folder.
func (c *cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.state}, elem...)...)
}

func (c *cluster) kubeconfig() string { return c.path("kubeconfig") }

func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the working folder: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), rootModule) {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("cannot find the repository: run this from inside it")
		}
		dir = up
	}
}

func stateHome() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the state folder, set HOME or XDG_STATE_HOME: %w", err)
	}
	return filepath.Join(home, ".local", "state"), nil
}
