package functionstest

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/backup"
)

// Heal makes the status of components' objects what it is once all went well: of the
// components that are named, or of all.
func (c *Crossplane) Heal(components ...string) {
	c.t.Helper()
	if len(components) == 0 {
		components = slices.Sorted(maps.Keys(c.Observed))
	}
	for _, n := range components {
		o := c.Observed[n]
		if o == nil {
			c.t.Fatalf("%s is not there to be healed", n)
		}
		generation := Get(o, "metadata", "generation").GetNumberValue()
		replicas := 1.0
		if v := Get(o, "spec", "replicas"); v != nil {
			replicas = v.GetNumberValue()
		}
		status := ""
		switch Get(o, "kind").GetStringValue() {
		case "Deployment":
			status = fmt.Sprintf(`{observedGeneration: %[1]v, replicas: %[2]v, updatedReplicas: %[2]v, readyReplicas: %[2]v, availableReplicas: %[2]v,
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`, generation, replicas)
		case "StatefulSet":
			status = fmt.Sprintf(`{observedGeneration: %[1]v, replicas: %[2]v, updatedReplicas: %[2]v, readyReplicas: %[2]v, currentReplicas: %[2]v, availableReplicas: %[2]v,
  currentRevision: a-1, updateRevision: a-1}`, generation, replicas)
		case "Job":
			status = `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`
		case "DatabaseCluster", "WebApp":
			status = fmt.Sprintf(`{phase: Running, readyGeneration: %[1]v, conditions: [{type: Synced, status: "True", observedGeneration: %[1]v}, {type: Ready, status: "True", observedGeneration: %[1]v}]}`, generation)
		case "AppConfig":
			bundle := c.WantedBundle()
			status = fmt.Sprintf(`{atProvider: {bundle: %[2]s, lastGood: %[2]s}, conditions: [{type: Synced, status: "True", observedGeneration: %[1]v}, {type: Ready, status: "True", observedGeneration: %[1]v}]}`, generation, bundle)
		case "Backup":
			if Get(o, "metadata", "annotations", backup.EscrowAnnotation) != nil && Get(o, "status") == nil {
				status = `{conditions: [{type: Escrowed, status: "True", reason: Kept, observedGeneration: 1}]}`
			}
		case "ConfigMap":
			if n == "instances" {
				c.RunInstances()
			}
		}
		if status != "" {
			c.SetStatus(n, status)
		}
	}
}

// SetStatus writes the status of a component's object, which is YAML, as its
// controller does.
func (c *Crossplane) SetStatus(component, status string) {
	c.t.Helper()
	c.Observed[component].Fields["status"] = structpb.NewStructValue(Parse(c.t, status))
}
