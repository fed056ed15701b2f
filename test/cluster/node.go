package main

import (
	"context"
	"errors"
	"time"
)

// nodeReady says whether the node is ready by its kubelet's own, present word:
// a node whose kubelet died goes on being called ready for most of a minute.
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
		// Heartbeats are given in whole seconds.
		if cond.Type == "Ready" && cond.LastHeartbeatTime.Before(r.At.Truncate(time.Second)) {
			return errors.New("its kubelet has not reported since it was started")
		}
	}
	return nil
}

func nodePath(n node) string { return "/api/v1/nodes/" + n.Name }
