package harness

import (
	"context"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// ClientPod is the name of the pod in manifests/client.
const ClientPod = "e2e-client"

// Client makes requests from a pod in a namespace, as the other pods there do: by the name of a
// Service, and under the network policies of the namespace.
type Client struct {
	cluster   *Cluster
	namespace string
	started   time.Time
}

// knownWithin is how long the network may take to learn of a new pod. Until then policies that
// admit the pod do not let it through.
const knownWithin = 10 * time.Second

// StartClient starts the pod from which requests are made, and waits until it runs.
func StartClient(ctx context.Context, c *Cluster, w *World) (*Client, error) {
	pod, err := manifests.Read("client/pod.yaml", map[string]string{"NAMESPACE": w.Namespace, "REGISTRY": c.Registry})
	if err != nil {
		return nil, err
	}
	if _, err := c.Create(ctx, pod); err != nil {
		return nil, err
	}
	err = w.Await(ctx, time.Minute, "the client's pod to run", func() (bool, string) {
		phase := Field(w.Get("Pod", ClientPod), "status", "phase")
		return phase == "Running", "it is " + phase
	})
	return &Client{cluster: c, namespace: w.Namespace, started: time.Now()}, err
}

// Stop removes the pod.
func (c *Client) Stop(ctx context.Context) error {
	return c.cluster.Delete(ctx, "Pod", c.namespace, ClientPod)
}

// IsClient reports whether a pod belongs to the tests themselves.
func IsClient(pod string) bool { return pod == ClientPod || pod == ledgerPod }

// Do makes one request, and retries it during the first knownWithin, when the network may not know
// the pod yet. An answer of any status is no error.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	for {
		a, err := c.cluster.Do(ctx, c.namespace, ClientPod, "client", r)
		if err == nil || time.Since(c.started) > knownWithin || ctx.Err() != nil {
			return a, err
		}
	}
}

// Run runs a command in the pod with the given standard input, and returns its standard output.
func (c *Client) Run(ctx context.Context, stdin string, command ...string) (string, error) {
	return c.cluster.Exec(ctx, c.namespace, ClientPod, "client", strings.NewReader(stdin), command...)
}
