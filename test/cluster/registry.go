package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// exampleRegistry is the name that published manifests call a company's registry
// by. The node pulls from the cluster's own instead, so that they apply as they
// stand.
const exampleRegistry = "registry.company.com"

// registryNames are all that the node knows the cluster's registry by.
func registryNames() []string { return []string{registryAddress, exampleRegistry} }

// namesOnNode are those that the node may have pulled an image by that was pushed
// under a name.
func namesOnNode(tag string) []string {
	rest, ours := strings.CutPrefix(tag, registryAddress)
	if !ours {
		return nil
	}
	var out []string
	for _, name := range registryNames() {
		out = append(out, name+rest)
	}
	return out
}

func (c *cluster) registry() process {
	return process{
		name:    "registry",
		ports:   []string{registryAddress},
		argv:    []string{c.tools.path("registry"), "--address", registryAddress, "--disk", c.path("registry")},
		healthy: answers("http://" + registryAddress + "/v2/"),
	}
}

// pushedDigest is the digest under which a registry on this machine has an
// image, empty when it has none.
func pushedDigest(ctx context.Context, ref string) string {
	address, rest, ok := strings.Cut(ref, "/")
	// Other registries are not asked: to push what they have costs little.
	if !ok || address != registryAddress || checkReachable(ref) != nil {
		return ""
	}
	name, tag := rest, "latest"
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		name, tag = rest[:i], rest[i+1:]
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, fmt.Sprintf("http://%s/v2/%s/manifests/%s", address, name, tag), nil)
	if err != nil {
		return ""
	}
	req.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json")
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return ""
	}
	return resp.Header.Get("Docker-Content-Digest")
}

// checkReachable returns an error for an image of the cluster's registry while
// the cluster is down. Its address is then somebody else's, and a request to it
// would leave the machine.
func checkReachable(ref string) error {
	if !strings.HasPrefix(ref, registryAddress+"/") {
		return nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("cannot list this machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.String() == hostAddress {
			return nil
		}
	}
	return fmt.Errorf("cannot push image %s: the cluster whose registry this is does not run: start it with up, or name another registry", ref)
}
