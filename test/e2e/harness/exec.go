package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// Exec runs a command in a container and returns what it prints.
func (c *Cluster) Exec(ctx context.Context, namespace, pod, container string, stdin io.Reader, command ...string) (string, error) {
	var out, errs bytes.Buffer
	if err := c.stream(ctx, namespace, pod, container, command, remotecommand.StreamOptions{Stdin: stdin, Stdout: &out, Stderr: &errs}); err != nil {
		return "", fmt.Errorf("cannot run %s in pod %s/%s: %w: %s", command[0], namespace, pod, err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), nil
}

func (c *Cluster) stream(ctx context.Context, namespace, pod, container string, command []string, opts remotecommand.StreamOptions) error {
	req := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container, Command: command,
			Stdin: opts.Stdin != nil, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	ex, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", req.URL().String())
	if err != nil {
		return fmt.Errorf("cannot reach the pod: %w", err)
	}
	return ex.StreamWithContext(ctx, opts)
}
