package plan_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"github.com/storeplane/storeplane/internal/plan"
)

// TestSchema: docs/plan.schema.json is the JSON Schema of a report. Write it anew with
//
//	go test ./internal/plan -update
func TestSchema(t *testing.T) {
	const page = "../../docs/plan.schema.json"
	r := &jsonschema.Reflector{
		// New fields may be added within a version.
		AllowAdditionalProperties: true,
		Mapper: func(typ reflect.Type) *jsonschema.Schema {
			verdicts := []any{plan.NoChange, plan.Changes, plan.Interrupts, plan.Refused}
			actions := []any{plan.Create, plan.Update, plan.Delete, plan.Adopt}
			switch typ {
			case reflect.TypeFor[plan.Verdict]():
				return &jsonschema.Schema{Type: "string", Enum: verdicts}
			case reflect.TypeFor[plan.Action]():
				return &jsonschema.Schema{Type: "string", Enum: actions}
			}
			return nil
		},
	}
	if err := r.AddGoComments("github.com/storeplane/storeplane/internal/plan", "."); err != nil {
		t.Fatal(err)
	}
	s := r.Reflect(&plan.Report{})
	s.ID, s.Title = jsonschema.ID("https://"+plan.APIVersion+"/"+plan.Kind), "A plan of storeplane"
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(page, got, 0o644); err != nil { //nolint:gosec // a page for everyone
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/plan.schema.json is not up to date: go test ./internal/plan -update\n%s", diff)
	}
}
