package appconfig

import (
	"bytes"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Logs returns the end of a container's log, or of the log of its previous run.
type Logs func(ctx context.Context, namespace, pod, container string, previous bool) (string, error)

// Limits of what is read of a log: more lines than are shown, since some are empty.
const (
	tailLines = 30
	tailBytes = 64 << 10
)

// NewLogs returns Logs that read from a cluster.
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
		// The last line may be cut off in the middle of a secret, which would not be redacted then.
		if len(b) >= tailBytes {
			b = b[:max(0, bytes.LastIndexByte(b, '\n'))]
		}
		return string(b), nil
	}
}
