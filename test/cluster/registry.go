package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// exampleRegistry is the name that published manifests use for a company's registry. The node
// pulls from the cluster's registry instead, so that the manifests can be applied unchanged.
const exampleRegistry = "registry.company.com"

// registryNames returns all names under which the node reaches the cluster's registry.
func registryNames() []string { return []string{registryAddress, exampleRegistry} }

// namesOnNode returns the names under which the node may have pulled an image that was pushed as
// tag. It returns none for an image of another registry.
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

// pushedDigest returns the digest of image ref in the cluster's registry, or "" if it does not
// have the image or is another registry.
func pushedDigest(ctx context.Context, ref string) string {
	address, rest, ok := strings.Cut(ref, "/")
	// Other registries are not queried: pushing an image again that a registry has costs little.
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

// checkReachable returns an error for an image of the cluster's registry while the cluster is
// down. Its address may then belong to another machine, to which a request would be sent.
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
