package harness

import (
	"context"
	"fmt"
	"strings"
)

// Reaches reports whether a connection from a container to a port of a host is accepted within 3
// seconds. The image of the container needs bash. If the command cannot be run in the container,
// that is an error and never a false.
func (c *Cluster) Reaches(ctx context.Context, namespace, pod, container, host string, port int) (bool, error) {
	try := fmt.Sprintf("timeout 3 bash -c '</dev/tcp/%s/%d' 2>/dev/null && echo yes || echo no", host, port)
	out, err := c.Exec(ctx, namespace, pod, container, nil, "bash", "-c", try)
	if err != nil {
		return false, err
	}
	switch answer := strings.TrimSpace(out); answer {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	default:
		return false, fmt.Errorf("cannot tell whether pod %s/%s reaches port %d of %s: it printed %q", namespace, pod, port, host, answer)
	}
}

// Reaches reports whether a connection from the client to a port of a host is accepted.
func (c *Client) Reaches(ctx context.Context, host string, port int) (bool, error) {
	return c.cluster.Reaches(ctx, c.namespace, ClientPod, "client", host, port)
}

// APIServer returns the IP address at which pods reach the API server, on port 443.
func (c *Cluster) APIServer(ctx context.Context) (string, error) {
	s, err := c.Get(ctx, "Service", "default", "kubernetes")
	if err != nil {
		return "", err
	}
	return Field(s, "spec", "clusterIP"), nil
}
