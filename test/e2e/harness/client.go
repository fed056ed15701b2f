package harness

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/manifests"
)

//go:embed request.py
var requestScript string

// clientPod is the name of the pod in manifests/client.
const clientPod = "e2e-client"

// Client makes requests from inside a namespace, the way its other pods do: by
// a Service's name, under its network policies.
type Client struct {
	cluster   *Cluster
	namespace string
}

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
		phase := Field(w.Get("Pod", clientPod), "status", "phase")
		return phase == "Running", "it is " + phase
	})
	return &Client{cluster: c, namespace: w.Namespace}, err
}

// Stop removes the pod.
func (c *Client) Stop(ctx context.Context) error {
	return c.cluster.Delete(ctx, "Pod", c.namespace, clientPod)
}

// IsClient tells whether a pod is of the tests' own.
func IsClient(pod string) bool { return pod == clientPod }

// Request to a Service.
type Request struct {
	Host    string            `json:"host"`
	Port    int               `json:"port"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

// Answer to a Request.
type Answer struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// Do makes one request. An answer of any status is no error.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	ask, err := json.Marshal(r)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot encode a request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := c.cluster.Exec(ctx, c.namespace, clientPod, "client", strings.NewReader(string(ask)), "python3", "-c", requestScript)
	if err != nil {
		return Answer{}, fmt.Errorf("%s http://%s%s: %w", r.Method, r.Host, r.Path, err)
	}
	a := Answer{}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		return Answer{}, fmt.Errorf("cannot decode the answer %q: %w", out, err)
	}
	return a, nil
}
