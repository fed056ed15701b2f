package state

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
)

// Of a container's log its last lines are read.
const (
	logLines = 20
	logBytes = 16 << 10
)

// Log is the end of what a container has written, or where previous is set the one before it
// of that name.
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
