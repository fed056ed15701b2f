package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// statusCmd is the command status.
type statusCmd struct{}

// Run prints a line for each part of the cluster and returns an error if one is not healthy.
func (*statusCmd) Run(ctx context.Context, c *cluster) error {
	if !exists(c.state) {
		return errors.New("there is no cluster: start one with up")
	}
	if err := c.tools.find(); err != nil {
		return err
	}
	processes := c.processes()
	lines := make([]string, len(processes))
	well := make([]bool, len(processes))
	var wg sync.WaitGroup
	for i, p := range processes {
		wg.Go(func() { lines[i], well[i] = c.describe(ctx, p) })
	}
	wg.Wait()
	up := true
	for i := range lines {
		fmt.Println(lines[i])
		up = up && well[i]
	}

	node, _ := c.condition(ctx, nodePath(c.node), "Ready")
	err := c.nodeReady(ctx)
	up = up && err == nil
	fmt.Printf("%-24s %-8s %s %s\n", "node "+c.node.Name, verdict(err), node.Status.NodeInfo.KubeletVersion, node.Status.NodeInfo.ContainerRuntimeVersion)
	err = c.crossplaneReady(ctx)
	up = up && err == nil
	version, _ := c.crossplaneVersion()
	fmt.Printf("%-24s %-8s %s\n", "crossplane", verdict(err), version)
	fmt.Printf("%-24s %s\n%-24s %s\n%-24s %s\n", "kubeconfig", c.kubeconfig(), "registry", registry, "logs", c.path("logs"))
	if !up {
		return errors.New("the cluster is not up: start what is missing with up")
	}
	return nil
}

// describe returns a line about a process, and whether it is healthy.
func (c *cluster) describe(ctx context.Context, p process) (string, bool) {
	var r record
	if !readJSON(c.recordPath(p.name), &r) {
		return fmt.Sprintf("%-24s %-8s", p.name, "absent"), false
	}
	if !r.alive() {
		return fmt.Sprintf("%-24s %-8s pid %d is gone", p.name, "dead", r.PID), false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := p.healthy(ctx)
	line := fmt.Sprintf("%-24s %-8s pid %d", p.name, verdict(err), r.PID)
	if err != nil {
		line += ": " + err.Error()
	}
	return line, err == nil
}

func verdict(err error) string {
	if err != nil {
		return "not well"
	}
	return "well"
}
