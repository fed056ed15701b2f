package plan_test

import (
	"reflect"
	"testing"

	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/test/pages"
)

// TestSchema: docs/plan.schema.json is the JSON Schema of a report.
func TestSchema(t *testing.T) {
	pages.Schemas(t, "docs/plan.schema.json", pages.Schema{
		Of: &plan.Report{}, Dir: "internal/plan", APIVersion: plan.APIVersion, Kind: plan.Kind, Title: "A plan of storeplane",
		Enums: map[reflect.Type][]any{
			reflect.TypeFor[plan.Verdict](): {plan.NoChange, plan.Changes, plan.Interrupts, plan.Refused},
			reflect.TypeFor[plan.Action]():  {plan.Create, plan.Update, plan.Delete, plan.Adopt},
		},
	}, *update)
}
