package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forward forwards a port of this machine's loopback interface, which it returns, to a port of a
// pod until ctx ends.
func (c *Cluster) Forward(ctx context.Context, namespace, pod string, port int) (uint16, error) {
	round, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return 0, fmt.Errorf("cannot make a client: %w", err)
	}
	url := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	ready := make(chan struct{})
	f, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: round}, http.MethodPost, url),
		[]string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		return 0, fmt.Errorf("cannot forward port %d of pod %s/%s: %w", port, namespace, pod, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return 0, fmt.Errorf("cannot forward port %d of pod %s/%s: %w", port, namespace, pod, errors.Join(err, ctx.Err()))
	case <-time.After(30 * time.Second):
		return 0, fmt.Errorf("cannot forward port %d of pod %s/%s: it takes longer than 30s", port, namespace, pod)
	}
	ports, err := f.GetPorts()
	if err != nil {
		return 0, fmt.Errorf("cannot find the port that was forwarded: %w", err)
	}
	return ports[0].Local, nil
}
