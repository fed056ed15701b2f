package main

import (
	"context"
	"errors"
	"time"
)

// nodeReady returns an error unless the kubelet runs and has reported the node as ready since it
// was started. The node's condition alone is not enough: it stays True for most of a minute after
// the kubelet has died.
func (c *cluster) nodeReady(ctx context.Context) error {
	var r record
	if !readJSON(c.recordPath("kubelet"), &r) || !r.alive() {
		return errors.New("its kubelet does not run")
	}
	n, err := c.condition(ctx, nodePath(c.node), "Ready")
	if err != nil {
		return err
	}
	for _, cond := range n.Status.Conditions {
		// Heartbeats have a resolution of one second.
		if cond.Type == "Ready" && cond.LastHeartbeatTime.Before(r.At.Truncate(time.Second)) {
			return errors.New("its kubelet has not reported since it was started")
		}
	}
	return nil
}

func nodePath(n node) string { return "/api/v1/nodes/" + n.Name }
