//go:build e2e

package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// seen is what runs at one time.
type seen struct {
	// pods are the pods of each workload by UID, each with a text that changes when its containers
	// or its PostgreSQL server restart.
	pods map[string]map[string]string
	// primaries are the primaries of each StatefulSet of servers, and volumes the sizes of volumes,
	// by name.
	primaries, volumes map[string]string
}

// look reads the present state of the claim's pods and volumes.
func (g *ground) look(ctx context.Context) (*seen, error) {
	s := &seen{pods: map[string]map[string]string{}, primaries: map[string]string{}, volumes: map[string]string{}}
	for _, p := range g.world.List("Pod") {
		workload := workloadOf(p.GetLabels(), harness.Field(p, "metadata", "generateName"))
		if workload == "" {
			continue
		}
		began, engine := restarts(p.Object), p.GetLabels()["app.kubernetes.io/component"]
		if engine == "postgresql" && strings.HasPrefix(workload, "StatefulSet") {
			// A PostgreSQL server may restart without its container.
			var err error
			if began, err = cluster.Exec(ctx, g.namespace, p.GetName(), "postgresql", nil, "psql", "-h", "/var/run/postgresql", "-U", "postgres", "-Atc", "SELECT pg_postmaster_start_time()"); err != nil {
				return nil, err
			}
		}
		if p.GetLabels()["storeplane.example.com/role"] == "primary" {
			s.primaries[workload] = p.GetName()
		}
		if s.pods[workload] == nil {
			s.pods[workload] = map[string]string{}
		}
		s.pods[workload][string(p.GetUID())] = began
	}
	for _, c := range g.world.List("PersistentVolumeClaim") {
		s.volumes[c.GetName()] = harness.Field(c, "spec", "resources", "requests", "storage")
	}
	return s, nil
}

func restarts(pod map[string]any) string {
	var out []string
	status, _ := pod["status"].(map[string]any)
	list, _ := status["containerStatuses"].([]any)
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			out = append(out, fmt.Sprint(m["restartCount"]))
		}
	}
	return strings.Join(out, ",")
}

// workloadOf returns the workload of a pod, or "" for the pod of a Job.
func workloadOf(labels map[string]string, generateName string) string {
	switch {
	case labels["batch.kubernetes.io/job-name"] != "" || generateName == "":
		return ""
	case labels["pod-template-hash"] != "":
		return "Deployment " + strings.TrimSuffix(generateName, "-"+labels["pod-template-hash"]+"-")
	case labels["apps.kubernetes.io/pod-index"] != "":
		return "StatefulSet " + strings.TrimSuffix(generateName, "-")
	}
	return ""
}

// until returns what happened between two states, and how often.
func (s *seen) until(after *seen) map[string]int {
	out := map[string]int{}
	for workload, pods := range s.pods {
		for uid, began := range pods {
			if after.pods[workload][uid] != began {
				out["end of pods of "+workload]++
			}
		}
	}
	for set, primary := range s.primaries {
		if now := after.primaries[set]; now != "" && now != primary {
			out["switchover of "+set] = 1
		}
	}
	for name, size := range s.volumes {
		if now := after.volumes[name]; now != "" && now != size {
			set := name[:strings.LastIndexByte(name, '-')]
			out["growth of StatefulSet "+strings.TrimPrefix(set, "data-")] = 1
		}
	}
	return out
}
