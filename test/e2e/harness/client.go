package harness

import (
	"context"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// ClientPod is the name of the pod in manifests/client.
const ClientPod = "e2e-client"

// Client makes requests from inside a namespace, the way its other pods do: by
// a Service's name, under its network policies.
type Client struct {
	cluster   *Cluster
	namespace string
	started   time.Time
}

// knownWithin is how long a network may take to learn of a new pod, which policies that
// admit it admit no sooner.
const knownWithin = 10 * time.Second

// StartClient starts the pod in which requests are made.
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

// IsClient tells whether a pod is of the tests' own.
func IsClient(pod string) bool { return pod == ClientPod || pod == ledgerPod }

// Do makes one request, again while the client is so new that its network may not know
// it. An answer of any status is no error.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	for {
		a, err := c.cluster.Do(ctx, c.namespace, ClientPod, "client", r)
		if err == nil || time.Since(c.started) > knownWithin || ctx.Err() != nil {
			return a, err
		}
	}
}

// Run a command, with what it reads from standard input, and return what it
// prints.
func (c *Client) Run(ctx context.Context, stdin string, command ...string) (string, error) {
	return c.cluster.Exec(ctx, c.namespace, ClientPod, "client", strings.NewReader(stdin), command...)
}
