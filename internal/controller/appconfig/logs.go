package appconfig

import (
	"bytes"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Logs reads the end of a container's log, or of the run before.
type Logs func(ctx context.Context, namespace, pod, container string, previous bool) (string, error)

// What is read of a log: more lines than are told, since some are empty.
const (
	tailLines = 30
	tailBytes = 64 << 10
)

// NewLogs of a cluster.
func NewLogs(c kubernetes.Interface) Logs {
	return func(ctx context.Context, namespace, pod, container string, previous bool) (string, error) {
		r, err := c.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
			Container: container, Previous: previous, TailLines: new(int64(tailLines)), LimitBytes: new(int64(tailBytes)),
		}).Stream(ctx)
		if err != nil {
			return "", fmt.Errorf("cannot read the log of pod %s/%s: %w", namespace, pod, err)
		}
		defer func() { _ = r.Close() }()
		b, err := io.ReadAll(io.LimitReader(r, tailBytes))
		if err != nil {
			return "", fmt.Errorf("cannot read the log of pod %s/%s: %w", namespace, pod, err)
		}
		// What is cut off may be the half of a secret.
		if len(b) >= tailBytes {
			b = b[:max(0, bytes.LastIndexByte(b, '\n'))]
		}
		return string(b), nil
	}
}
