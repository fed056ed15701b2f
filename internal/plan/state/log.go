package state

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
)

// logLines and logBytes limit what is read of the end of a container's log.
const (
	logLines = 20
	logBytes = 16 << 10
)

// Log returns the end of a container's log, or with previous that of the container that ran before
// it.
func (l *Live) Log(ctx context.Context, namespace, pod, container string, previous bool) (string, error) {
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes))}
	stream, err := l.core.Pods(namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	b, err := io.ReadAll(stream)
	if err != nil {
		return "", fmt.Errorf("cannot read the log of pod %s: %w", pod, err)
	}
	return string(b), nil
}
