package explain_test

import (
	"reflect"
	"testing"

	"github.com/storeplane/storeplane/internal/explain"
	"github.com/storeplane/storeplane/test/pages"
)

// TestDocs: the outputs in docs/explain.md are those of the golden files.
func TestDocs(t *testing.T) { pages.Recordings(t, "docs/explain.md", *update) }

// TestSchema: docs/explain.schema.json is the JSON Schema of a report.
func TestSchema(t *testing.T) {
	pages.Schemas(t, "docs/explain.schema.json", pages.Schema{
		Of: &explain.Report{}, Dir: "internal/explain", APIVersion: explain.APIVersion, Kind: explain.Kind, Title: "Explanations of storeplane",
		Enums: map[reflect.Type][]any{
			reflect.TypeFor[explain.State](): {explain.Ready, explain.NotReady, explain.Refused, explain.Paused, explain.Deleting},
			reflect.TypeFor[explain.Source](): {
				explain.FromCondition, explain.FromContainer, explain.FromEvent, explain.FromLog, explain.FromNode, explain.FromPackage, explain.FromQuota, explain.FromVolume,
			},
		},
	}, *update)
}
