package functionstest

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/converge"
)

// Heal sets the status of components' objects to the one that they have when everything went well:
// of the named components, or of all.
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
		switch Get(o, "kind").GetStringValue() {
		case appsv1.DatabaseClusterKind, appsv1.WebAppKind:
			// The health of a claim depends on what it composes, which is not simulated here.
			c.SetStatus(n, fmt.Sprintf(`{phase: Running, readyGeneration: %[1]v, conditions: [{type: Synced, status: "True", observedGeneration: %[1]v}, {type: Ready, status: "True", observedGeneration: %[1]v}]}`, Get(o, "metadata", "generation").GetNumberValue()))
		case backupv1.BackupKind:
			// A Backup becomes Ready only when a test sets its status.
			if Get(o, "metadata", "annotations", backup.EscrowAnnotation) != nil && Get(o, "status") == nil {
				c.SetStatus(n, `{conditions: [{type: Escrowed, status: "True", reason: Kept, observedGeneration: 1}]}`)
			}
		default:
			if n == "instances" {
				c.RunInstances()
			}
			u := Unstructured(o)
			if converge.Heal(u); u.Object["status"] != nil {
				Set(o, u.Object["status"], "status")
			}
		}
	}
}

// SetStatus writes the status of a component's object, which is YAML, as its controller does.
func (c *Crossplane) SetStatus(component, status string) {
	c.t.Helper()
	c.Observed[component].Fields["status"] = structpb.NewStructValue(Parse(c.t, status))
}
